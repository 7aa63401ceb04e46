// Package equal gives every elastic job an equal part of the devices, as far as its
// legal sizes go: with n jobs about, as many workers as fit an n-th of the cluster,
// but never fewer than its smallest size. It is what fair-share schedulers do where
// a job's size is negotiable, and the null of elastic ones.
//
// Left out: what rigid jobs leave of their part is not handed out again, and how
// well a job scales is not asked.
package equal

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "equal-share", Part: allocate.SizePart, Status: "recalled",
	Source: "folklore: processor sharing over legal sizes",
	Idea:   "elastic jobs get an equal part of the devices, within their legal sizes",
	Goal:   "throughput", Needs: "jobs that say which sizes they can take", Live: "resizes by checkpoint and restart",
}

// Sizer is the strategy.
type Sizer struct{}

var _ allocate.Sizer = Sizer{}

// Want is the largest legal size within an equal share, or the smallest there is.
func (Sizer) Want(v plan.View, job plan.JobID, crowd allocate.Crowd) int32 {
	shape := v.Shape(job)
	worker := shape.Milli(1)
	if !shape.Elastic() || worker == 0 {
		return shape.Gang
	}
	share := crowd.Devices * 1000 / int64(max(1, crowd.Active)) / worker
	return allocate.Largest(shape, func(size int32) bool { return int64(size) <= share })
}
