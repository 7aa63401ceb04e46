// Package las runs the jobs that have attained the least service, in devices times
// useful running time, so that short jobs pass long ones without anybody knowing
// how long a job is: foreground-background scheduling (Kleinrock, Queueing
// Systems 1976), in two dimensions and continuous, as Tiresias (Gu et al., NSDI
// 2019) takes it for its starting point before it adds queues.
//
// A running job's rank is refreshed at the end of each quantum of running time; until
// then it keeps the rank it had at the quantum's beginning. Two jobs of like age
// displace each other every quantum, at the price of a restart each time. So quanta
// grow with what a job has attained (Growth), as the levels of multilevel feedback
// do (Kleinrock, ibid.) and Tiresias' discretised queues: a job is displaced for its
// age as often as it doubles it, not as often as minutes pass, and no job needs
// queues whose bounds somebody must know. MinimumRun leaves young runs alone
// besides. Left out: queues with bounds, promotion.
package las

import (
	"math"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "las", Part: schedule.OrderPart, Status: "recalled",
	Source: "textbook: least attained service (Kleinrock 1976); Gu et al., NSDI 2019",
	Idea:   "the least attained device time first, refreshed every quantum, and quanta double",
	Goal:   "throughput", Needs: "nothing", Live: "preempts by checkpoint and restart",
}

// Config tunes how often ranks are refreshed.
type Config struct {
	// Quantum is the running time of a job's first quantum, at the size it asked for.
	Quantum unit.Duration `yaml:"quantum" above:"0"`
	// Growth is how many times as much a job has attained at the end of a quantum as at
	// its beginning; 1 makes all quanta as long as the first.
	Growth int64 `yaml:"growth" least:"1"`
	// MinimumRun is how long a run is left alone before it may be displaced.
	MinimumRun unit.Duration `yaml:"minimum-run" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Quantum: unit.Minute, Growth: 2, MinimumRun: unit.Minute} }

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
	shape := v.Shape(id)
	if j.Run == plan.None || v.Run(j.Run).Status != plan.Running || shape.Milli(shape.Gang) == 0 {
		return schedule.Key{-int64(j.Priority), served}, until
	}
	from, to := o.config.quantum(served, shape.Milli(shape.Gang))
	rate := shape.Milli(v.Run(j.Run).Workers)
	until = v.Now().Add(unit.Duration((to-served-1)/rate + 1))
	return schedule.Key{-int64(j.Priority), from}, until
}

// quantum is from which attained service to which the quantum lasts in which a job is
// that has attained so much, and that takes so many thousandths of devices as it asked.
func (c Config) quantum(served, milli int64) (from, to int64) {
	if int64(c.Quantum) > math.MaxInt64/milli {
		return 0, math.MaxInt64
	}
	to = int64(c.Quantum) * milli
	if c.Growth == 1 {
		from = served - served%to
		return from, from + min(to, math.MaxInt64-from)
	}
	for to <= served {
		if from = to; to > math.MaxInt64/c.Growth {
			return from, math.MaxInt64
		}
		to *= c.Growth
	}
	return from, to
}

// Rules let jobs displace those that have attained more.
func (o Order) Rules() schedule.Rules {
	return schedule.Rules{Preempt: true, Turns: true, MinimumRun: o.config.MinimumRun}
}
