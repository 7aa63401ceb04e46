// Package srsf runs the job with the least service left, that is running time left
// times devices, and takes the room of larger ones for it: shortest remaining time
// in two dimensions, the clairvoyant yardstick of Tiresias (Gu et al., NSDI 2019).
// On a cluster a job that is short but wide holds others up as much as one that is
// narrow but long.
//
// Jobs without an estimate come behind those that have one, by the service they
// have attained; an overrun estimate is doubled. A stop has to pay, as package law weighs it by package cost:
// Tiresias' yardstick stops whatever ranks behind.
package srsf

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/cost"
	"github.com/musterdl/muster/schedule/remaining"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "srsf", Part: schedule.OrderPart, Status: "recalled",
	Source: "the clairvoyant baseline of Tiresias (Gu et al., NSDI 2019)",
	Idea:   "the least device time left goes first and displaces what has more",
	Goal:   "throughput", Needs: "an estimate of the run time", Live: "preempts by checkpoint and restart",
}

// Order is the strategy.
type Order struct{ cost.Left }

var _ schedule.Order = Order{}

// Key is the priority, then whether there is an estimate, then the service left in
// thousandths of a device times milliseconds (microseconds would overflow at the
// largest clusters).
func (Order) Key(v plan.View, job plan.JobID) (schedule.Key, unit.Time) {
	shape := v.Shape(job)
	return remaining.Key(v, job, func(left unit.Duration) int64 { return int64(left/unit.Millisecond) * shape.Milli(shape.Gang) })
}

// Rules let smaller jobs displace larger ones.
func (Order) Rules() schedule.Rules { return schedule.Rules{Preempt: true} }
