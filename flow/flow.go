// Package flow is step 5: which bytes first, at what rate. At job scale a run's
// traffic is one stream per link; a policy gives it a strict class and a weight,
// and the network shares each class max-min.
package flow

import "github.com/musterdl/muster/plan"

// Policy gives a run that is about to start its place on the links.
type Policy interface {
	Terms(v plan.View, job plan.JobID, terms plan.Terms) plan.Terms
}
