// Package sjf starts the job with the shortest estimated run time first, and lets
// what runs run: the textbook answer to a queue of which the lengths are known
// (shortest processing time; Smith, Naval Research Logistics Quarterly 1956).
// Smaller work fills in around a job that does not fit. Jobs without an estimate
// come behind those that have one, in order of submission.
//
// Left out: ageing. A long job waits as long as shorter ones keep coming.
package sjf

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "sjf", Part: schedule.OrderPart, Status: "recalled",
	Source: "textbook: shortest processing time (Smith 1956), with backfill",
	Idea:   "the shortest estimated job first; what runs is left alone",
	Goal:   "throughput", Needs: "an estimate of the run time", Live: "as simulated",
}

// Order is the strategy.
type Order struct{}

var _ schedule.Order = Order{}

// Key is the priority, then whether there is an estimate, then the estimate.
func (Order) Key(v plan.View, job plan.JobID) (schedule.Key, unit.Time) {
	j := v.Job(job)
	key := schedule.Key{-int64(j.Priority), 0, int64(j.Estimate)}
	if j.Estimate <= 0 {
		key[1], key[2] = 1, int64(j.Submit)
	}
	return key, unit.Never
}

// Rules never preempt, and let smaller work fill in.
func (Order) Rules() schedule.Rules { return schedule.Rules{} }
