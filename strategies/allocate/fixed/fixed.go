// Package fixed gives every job the number of workers it asked for: the null of
// sizing.
package fixed

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "fixed", Part: allocate.SizePart, Status: "null",
	Source: "folklore", Idea: "as many workers as asked, no more, no fewer",
	Goal: "throughput", Needs: "nothing", Live: "as simulated",
}

// Sizer is the strategy.
type Sizer struct{}

var _ allocate.Sizer = Sizer{}

// Want is what the job asked for.
func (Sizer) Want(v plan.View, job plan.JobID, _ allocate.Crowd) int32 { return v.Shape(job).Gang }
