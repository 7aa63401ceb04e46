// Package efficient sizes elastic jobs by what their menus say of them: the largest
// legal size within an equal share of the cluster at which each worker still does a
// good part of what one alone does. A job that does not scale leaves its share to
// others; where nothing is known of a job it gets its equal share.
//
// After the marginal gain of Optimus (EuroSys 2018) and AFS (NSDI 2021), with a
// threshold in the place of their auction, so that one job's size does not depend on
// every other's. Left out: how long a job still has to go.
package efficient

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "efficient", Part: allocate.SizePart, Status: "after",
	Source: "after Optimus (EuroSys 2018) and AFS (NSDI 2021): the gain of another worker",
	Idea:   "elastic jobs get the largest size within an equal share at which every worker still pulls its weight",
	Goal:   "throughput", Needs: "rates by number of workers", Live: "resizes by checkpoint and restart",
}

// Config says what pulling one's weight is.
type Config struct {
	// LeastPerWorker is the part of a lone worker's rate that each must still do.
	LeastPerWorker unit.Milli `yaml:"least-per-worker" least:"0" most:"1000"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{LeastPerWorker: 600} }

// Sizer is the strategy.
type Sizer struct{ config Config }

var _ allocate.Sizer = Sizer{}

// New returns the sizer; the configuration must be valid.
func New(c Config) Sizer { return Sizer{c} }

// Want is the largest legal size that is within an equal share and efficient on the
// reference device, or the smallest there is.
func (s Sizer) Want(v plan.View, job plan.JobID, crowd allocate.Crowd) int32 {
	shape := v.Shape(job)
	worker := shape.Milli(1)
	if !shape.Elastic() || worker == 0 {
		return shape.Gang
	}
	share := crowd.Devices * 1000 / int64(max(1, crowd.Active)) / worker
	alone := rate(v, job, 1)
	return allocate.Largest(shape, func(size int32) bool {
		return int64(size) <= max(share, 1) &&
			(alone == 0 || rate(v, job, size)*int64(unit.Whole) >= alone*int64(size)*int64(s.config.LeastPerWorker))
	})
}

// rate is that of a job with so many workers on the first device model of which it is known.
func rate(v plan.View, job plan.JobID, workers int32) int64 {
	for model := range int32(v.Room().Models()) {
		if rate := v.Rate(job, model, workers, false); rate > 0 {
			return rate
		}
	}
	return 0
}
