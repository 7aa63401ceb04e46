// Package srtf runs the job with the least estimated running time left, and takes
// the room of longer ones for it: with exact estimates and free preemption the
// best there is for the mean completion time on one machine (Schrage, Operations
// Research 1968), and the yardstick here even where neither holds.
//
// Jobs without an estimate come behind those that have one, by the service they
// have attained. An estimate that was overrun is doubled, so that a long job with
// a short estimate does not keep the first rank. A stop has to pay, as package law weighs it by package cost.
package srtf

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
	Name: "srtf", Part: schedule.OrderPart, Status: "recalled",
	Source: "textbook: shortest remaining processing time (Schrage 1968)",
	Idea:   "the least running time left goes first and displaces what has more",
	Goal:   "throughput", Needs: "an estimate of the run time", Live: "preempts by checkpoint and restart",
}

// Order is the strategy.
type Order struct{ cost.Left }

var _ schedule.Order = Order{}

// Key is the priority, then whether there is an estimate, then the time left.
func (Order) Key(v plan.View, job plan.JobID) (schedule.Key, unit.Time) {
	return remaining.Key(v, job, func(left unit.Duration) int64 { return int64(left) })
}

// Rules let shorter jobs displace longer ones.
func (Order) Rules() schedule.Rules { return schedule.Rules{Preempt: true} }
