// Package cost makes an order by size a schedule.Weigher: what is believed to be left of a job is what its
// completion costs.
package cost

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/remaining"
)

// Left weighs jobs by what is left of them.
type Left struct{}

var _ schedule.Weigher = Left{}

// longest is the level above which nobody is taken to have more before it: 255 device-years.
const longest = 27

// Cost is the running time that is left, of a job that does not compute with its load. A job without an estimate is taken
// to need as long again as it will have run at the end of its level (remaining.Level), and a minute at least: it costs the
// same until its rank changes.
func (Left) Cost(v plan.View, id plan.JobID) float64 {
	left, _, known := remaining.Of(v, id)
	if !known {
		level, _ := remaining.Level(v, id)
		milli := v.Shape(id).Milli(v.Shape(id).Gang)
		if milli == 0 { // what needs no device takes its time as if it had one
			milli = 1000
		}
		left = max(unit.Minute, unit.Minute<<min(level, longest)*1000/unit.Duration(milli))
	}
	if run := v.RunOf(id); run == plan.None || v.Run(run).Status != plan.Running {
		left += v.Job(id).Checkpoint.Load
	}
	return max(1e-6, left.Seconds())
}

// Alike is 0: what is believed of each job says as much as its like.
func (Left) Alike(plan.View, plan.JobID, plan.JobID) float64 { return 0 }

// Ran is for how many seconds a job has run.
func (Left) Ran(v plan.View, id plan.JobID) float64 { return remaining.Done(v, id).Seconds() }
