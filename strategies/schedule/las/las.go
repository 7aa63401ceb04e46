// Package las runs the jobs that have attained the least service, in devices times
// useful running time, so that short jobs pass long ones without anybody knowing
// how long a job is: foreground-background scheduling (Kleinrock, Queueing
// Systems 1976), in two dimensions and continuous, as Tiresias (Gu et al., NSDI
// 2019) takes it for its starting point before it adds queues.
//
// A running job's rank is refreshed once per quantum of running time; until then
// it keeps the rank it had at the quantum's beginning. Two jobs of like age
// displace each other every quantum, at the price of a restart each time: that is
// what Tiresias' queues cure, and MinimumRun softens. Left out: queues, promotion.
package las

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "las", Part: schedule.OrderPart, Status: "recalled",
	Source: "textbook: least attained service (Kleinrock 1976); Gu et al., NSDI 2019",
	Idea:   "the least attained device time first, refreshed every quantum",
	Goal:   "throughput", Needs: "nothing", Live: "preempts by checkpoint and restart",
}

// Config tunes how often ranks are refreshed.
type Config struct {
	// Quantum is the running time between two refreshes of a running job's rank.
	Quantum unit.Duration `yaml:"quantum" above:"0"`
	// MinimumRun is how long a run is left alone before it may be displaced.
	MinimumRun unit.Duration `yaml:"minimum-run" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Quantum: unit.Minute} }

// Order is the strategy.
type Order struct{ config Config }

var _ schedule.Order = Order{}

// New returns the order; the configuration must be valid.
func New(c Config) Order { return Order{c} }

// Key is the priority, then the attained service: of a waiting job exactly, of a
// running one as it was when its present quantum began.
func (o Order) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
	j := v.Job(id)
	served, until := v.Service(id), unit.Never
	if j.Run != plan.None && v.Run(j.Run).Status == plan.Running {
		into := (v.Executed(id) - j.Executed) % o.config.Quantum
		served -= int64(into) * v.Shape(id).Milli(v.Run(j.Run).Workers)
		until = v.Now().Add(o.config.Quantum - into)
	}
	return schedule.Key{-int64(j.Priority), served}, until
}

// Rules let jobs displace those that have attained more.
func (o Order) Rules() schedule.Rules {
	return schedule.Rules{Preempt: true, MinimumRun: o.config.MinimumRun}
}
