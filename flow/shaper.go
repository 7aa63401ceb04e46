package flow

import "github.com/musterdl/muster/plan"

// Setting is what a run that goes on gets of the links from now on.
type Setting struct {
	Run     plan.RunID
	Traffic plan.TrafficTerms
}

// Shaper looks at all runs together: it is asked after every commit that started or
// ended something, and what it answers becomes regrants. A run without a setting
// stays as it is.
type Shaper interface {
	Shape(v plan.View, runs []plan.RunID, into []Setting) []Setting
}
