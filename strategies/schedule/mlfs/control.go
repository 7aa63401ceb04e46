package mlfs

import (
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/mlfs/shed"
)

// Control puts MLF-C before a Scheduler that ranks by this order.
func (o *Order) Control(inner schedule.Scheduler) schedule.Scheduler {
	return shed.Around(inner, shed.Rule{Period: o.config.Period, Overload: o.config.Overload, Content: o.config.content})
}

// content reports whether a job has what its owner wants. Without a target that is so
// when its loss can hardly fall any more: losses fall ever more slowly, so at its last
// pace it comes down further than it really would.
func (c Config) content(v plan.View, id plan.JobID) bool {
	j := v.Job(id)
	if j.Loss <= 0 || j.Phase != plan.Active && j.Phase != plan.Waiting {
		return false
	}
	if target := v.ProfileOf(id).TargetLoss; target > 0 {
		return j.Loss <= target
	}
	more := j.Pace * float64(plan.FullRate-j.Progress)
	return c.Negligible > 0 && j.Fallen > 0 && more <= c.Negligible*(j.Fallen+more)
}
