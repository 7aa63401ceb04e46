// Package edf runs the job whose deadline is nearest, and takes the room of others for
// it: on one machine that meets all deadlines if anything does (Liu and Layland, JACM
// 20(1), 1973; Dertouzos, IFIP 1974), and it is the baseline of every published
// scheduler with deadlines. Jobs without a deadline come behind, by submission.
//
// Under overload it spends devices on jobs that are late already, and starves the
// rest. With Hopeless it does not: a job that can no longer be in time, by what is
// believed to be left of it, falls back to those without a deadline, and these go by
// the shortest time left.
package edf

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/remaining"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "edf", Part: schedule.OrderPart, Status: "recalled",
	Source: "textbook: earliest deadline first (Liu and Layland 1973); giving up the hopeless is ours",
	Idea:   "the nearest deadline goes first and displaces later ones; jobs without a deadline come behind",
	Goal:   "deadline", Needs: "deadlines; with hopeless, an estimate of the run time", Live: "preempts by checkpoint and restart",
}

// Config tunes the order.
type Config struct {
	// Hopeless puts jobs that can no longer meet their deadline behind those that can,
	// and whatever has none to meet by the time that is left of it.
	Hopeless bool `yaml:"hopeless"`
}

// Default is the textbook's order.
func Default() Config { return Config{} }

// Order is the strategy.
type Order struct{ config Config }

var _ schedule.Order = Order{}

// New returns the order.
func New(c Config) Order { return Order{c} }

// Rules let nearer deadlines displace others.
func (Order) Rules() schedule.Rules { return schedule.Rules{Preempt: true} }

// Key is the priority, then the group (jobs with a deadline to meet, those without,
// and among these the ones of which nobody knows how long they take), then the
// deadline, the time left or what stands for it.
func (o Order) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
	j := v.Job(id)
	priority := -int64(j.Priority)
	due := j.Submit.Add(j.Deadline)
	if !o.config.Hopeless {
		if j.Deadline > 0 {
			return schedule.Key{priority, 0, int64(due)}, unit.Never
		}
		return schedule.Key{priority, 1, int64(j.Submit)}, unit.Never
	}
	left, until, known := remaining.Of(v, id)
	if !known {
		if j.Deadline > 0 && due > v.Now() {
			return schedule.Key{priority, 0, int64(due)}, due
		}
		level, until := remaining.Level(v, id)
		return schedule.Key{priority, 2, level}, until
	}
	// What waits loses its chance in time; what runs has to be looked at again too, since
	// it may run on fewer workers than it asked for.
	if last := due.Add(-left); j.Deadline > 0 && v.Now() <= last {
		return schedule.Key{priority, 0, int64(due)}, min(until, last+1)
	}
	return schedule.Key{priority, 1, int64(left)}, until
}
