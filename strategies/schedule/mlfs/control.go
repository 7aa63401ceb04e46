package mlfs

import (
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Control puts MLF-C before a Scheduler that ranks by this order, which lets jobs that
// have reported be ranked anew as well.
func (o *Order) Control(inner schedule.Scheduler) schedule.Scheduler {
	return &controlled{Around: strategy.Around[schedule.Scheduler]{Inner: inner}, config: o.config}
}

// controlled is a Scheduler whose jobs may be ended for good.
type controlled struct {
	strategy.Around[schedule.Scheduler]
	config Config
	live   []plan.JobID // not over when last looked at, by id
}

var (
	_ schedule.Scheduler = (*controlled)(nil)
	_ schedule.Rebuilder = (*controlled)(nil)
)

// Decide ends, when a period begins, the jobs that have nothing more to gain while others
// wait; the rest is for the Scheduler inside, whose ranks run out at the same instant.
func (c *controlled) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	for _, id := range why.Jobs {
		if at, known := slices.BinarySearch(c.live, id); !known {
			c.live = slices.Insert(c.live, at, id)
		}
	}
	for i := range why.Observed {
		if id := why.Observed[i].Job; !d.Job(id).Phase.Over() && !slices.Contains(why.Jobs, id) {
			why.Jobs = append(why.Jobs, id)
		}
	}
	// Only when it was called for that: a decision after a restart decides nothing new.
	if why.Wake && int64(d.Now())%int64(c.config.Period) == 0 && c.overloaded(d.View) {
		for _, id := range c.live {
			if c.config.content(d.View, id) && d.Shed(id) {
				why.Room = true
				if !slices.Contains(why.Jobs, id) {
					why.Jobs = append(why.Jobs, id)
				}
			}
		}
	}
	return c.Inner.Decide(d, why)
}

// overloaded reports whether what waits asks for more than the configured part of the
// cluster.
func (c *controlled) overloaded(v plan.View) bool {
	c.live = slices.DeleteFunc(c.live, func(id plan.JobID) bool { return v.Job(id).Phase.Over() })
	if c.config.Overload == 0 {
		return false
	}
	waiting, most := int64(0), int64(v.Devices())*int64(c.config.Overload)
	for _, id := range c.live {
		if v.Job(id).Phase == plan.Waiting {
			shape := v.Shape(id)
			waiting += shape.Milli(shape.Gang)
		}
	}
	return waiting >= most
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

// Rebuild passes the order on; the next trigger names all live jobs.
func (c *controlled) Rebuild(v plan.View) {
	c.live = nil
	if r, ok := strategy.Can[schedule.Rebuilder](c.Inner); ok {
		r.Rebuild(v)
	}
}
