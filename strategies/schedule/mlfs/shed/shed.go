// Package shed is load control: while what waits asks for much of the cluster, jobs that
// have what their owner wants are ended for good, and make room (after Wang, Liu and Shen,
// MLFS, CoNEXT 2020).
package shed

import (
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Rule says when jobs are ended, and which.
type Rule struct {
	// Period is how often the load is looked at. The Scheduler inside has to wake at its
	// multiples.
	Period unit.Duration
	// Overload is how much of all devices what waits has to ask for; 0 ends nobody.
	Overload unit.Milli
	// Content reports whether a job has what its owner wants.
	Content func(v plan.View, job plan.JobID) bool
}

// Around puts load control before a Scheduler, which lets jobs that have reported be
// ranked anew as well.
func Around(inner schedule.Scheduler, rule Rule) schedule.Scheduler {
	return &controlled{Around: strategy.Around[schedule.Scheduler]{Inner: inner}, rule: rule}
}

// controlled is a Scheduler whose jobs may be ended for good.
type controlled struct {
	strategy.Around[schedule.Scheduler]
	rule Rule
	live []plan.JobID // not over when last looked at, by id
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
	if why.Wake && int64(d.Now())%int64(c.rule.Period) == 0 && c.overloaded(d.View) {
		for _, id := range c.live {
			if c.rule.Content(d.View, id) && d.Shed(id) {
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
	if c.rule.Overload == 0 {
		return false
	}
	waiting, most := int64(0), int64(v.Devices())*int64(c.rule.Overload)
	for _, id := range c.live {
		if v.Job(id).Phase == plan.Waiting {
			shape := v.Shape(id)
			waiting += shape.Milli(shape.Gang)
		}
	}
	return waiting >= most
}

// Rebuild passes the order on; the next trigger names all live jobs.
func (c *controlled) Rebuild(v plan.View) {
	c.live = nil
	if r, ok := strategy.Can[schedule.Rebuilder](c.Inner); ok {
		r.Rebuild(v)
	}
}
