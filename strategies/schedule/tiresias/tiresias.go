// Package tiresias ranks jobs by the service they have attained, in two
// dimensions (devices times time) and in a few discrete queues, so that short jobs
// pass long ones without anybody knowing how long a job is (Gu et al., NSDI 2019).
//
// A job starts in the first queue and is demoted when its attained service passes
// a queue's bound. Inside a queue 2D-LAS goes by first start, so that jobs of like
// age do not displace each other; 2D-Gittins goes by the chance of finishing soon
// per unit of service, as learned from the jobs that finished. A job that has
// waited PromoteAfter times as long as it has run goes back to the first queue.
//
// Read: the public simulator and notes. Two of its slips are not repeated: the
// next demotion is at bound/devices - served, not (bound - served)/devices, and
// the Gittins denominator may use what a sample has left instead of all of it
// (Textbook). Left out: the refit of the skew limit from history.
package tiresias

import (
	"fmt"
	"math"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "tiresias", System: "Tiresias", Part: schedule.OrderPart, Status: "read",
	Source: "Gu et al., NSDI 2019; SymbioticLab/Tiresias simulator",
	Idea:   "least attained service, in device-seconds and a few queues; or the Gittins index of it",
	Goal:   "throughput", Needs: "nothing; the Gittins form learns from finished jobs",
	Live: "preempts by checkpoint and restart",
}

// Config tunes the queues.
type Config struct {
	// QueuesDeviceSec are the upper bounds of all queues but the last, in
	// device-seconds of attained service.
	QueuesDeviceSec []float64 `yaml:"queues-device-s"`
	// Gittins ranks inside a queue by the Gittins index instead of by first start.
	Gittins bool `yaml:"gittins"`
	// QuantumDeviceSec is the service over which the index looks ahead, and between
	// two looks at a running job.
	QuantumDeviceSec float64 `yaml:"quantum-device-s"`
	// Textbook counts what a sample has left in the index's denominator, where the
	// public simulator counts all of it.
	Textbook bool `yaml:"textbook"`
	// SamplesDeviceSec are attained services of jobs of the past, known beforehand.
	SamplesDeviceSec []float64 `yaml:"samples-device-s"`
	// Refresh is how often finished jobs are taken into the index.
	Refresh unit.Duration `yaml:"refresh"`
	// PromoteAfter sends a started, waiting job back to the first queue once it has
	// waited so many times as long as it ran; 0 is never.
	PromoteAfter float64 `yaml:"promote-after" least:"0"`
	// SkewLimit: jobs whose largest tensor is more than this part of the model, in
	// thousandths, are consolidated; the placer reads it.
	SkewLimit unit.Milli `yaml:"skew-limit"`
}

// Default returns the configuration used where none is given: two queues, with the
// bound that suits job mixes of minutes to days (the simulator's own 3,600 demotes
// nearly everybody at once).
func Default() Config {
	return Config{QueuesDeviceSec: []float64{36000}, QuantumDeviceSec: 3250, Refresh: unit.Day, SkewLimit: 500}
}

// Validate says what is wrong with a configuration.
func (c Config) Validate() error {
	last := 0.0
	for i, q := range c.QueuesDeviceSec {
		if q <= last {
			return fmt.Errorf("queues-device-s[%d] is %g: bounds must be positive and ascend", i, q)
		}
		last = q
	}
	switch {
	case c.Gittins && c.QuantumDeviceSec <= 0:
		return fmt.Errorf("quantum-device-s is %g: it must be positive", c.QuantumDeviceSec)
	case c.Gittins && c.Refresh <= 0:
		return fmt.Errorf("refresh is %s: it must be positive", c.Refresh)
	}
	return nil
}

// Order is the strategy.
type Order struct {
	config  Config
	bounds  []int64 // thousandths of a device times microseconds
	gittins *gittins
}

var (
	_ schedule.Order   = (*Order)(nil)
	_ schedule.Ager    = (*Order)(nil)
	_ schedule.Learner = (*Order)(nil)
)

// perDeviceSec is one device-second in the State's unit of service.
const perDeviceSec = 1e9

// New returns the order; the configuration must be valid.
func New(c Config) *Order {
	o := &Order{config: c}
	for _, q := range c.QueuesDeviceSec {
		o.bounds = append(o.bounds, int64(q*perDeviceSec))
	}
	if c.Gittins {
		o.gittins = newGittins(c)
	}
	return o
}

// Rules let better queues displace worse ones.
func (o *Order) Rules() schedule.Rules { return schedule.Rules{Preempt: true, Turns: true} }

// Key is the queue, then the Gittins index or the first start, then submission. It
// holds until the job is demoted, re-indexed or promoted.
func (o *Order) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
	j := v.Job(id)
	// Memo holds the service and the waiting time that a promotion forgave.
	served := v.Service(id) - j.Memo[0]
	queue := 0
	for queue < len(o.bounds) && served >= o.bounds[queue] {
		queue++
	}
	until := unit.Never
	next := int64(math.MaxInt64)
	if queue < len(o.bounds) {
		next = o.bounds[queue]
	}
	key := schedule.Key{int64(queue), int64(j.Started), int64(j.Submit)}
	if o.gittins != nil {
		index, step := o.gittins.index(v, served)
		key[1], next = -index, min(next, step)
		until = o.gittins.refreshed()
	}
	if j.Run != plan.None && v.Run(j.Run).Status == plan.Running {
		if next < math.MaxInt64 {
			rate := v.Shape(id).Milli(v.Run(j.Run).Workers)
			until = min(until, v.Now().Add(unit.Duration((next-served+rate-1)/max(1, rate))))
		}
	} else if o.config.PromoteAfter > 0 && queue > 0 && j.Phase == plan.Waiting && j.Started != unit.Never {
		until = min(until, max(o.promotion(v, id), v.Now()+1))
	}
	return key, until
}

// promotion is when a waiting job will have waited PromoteAfter times as long as it
// ran. Both are counted since its last promotion, before the first one since its
// first start: the wait of a job that has not run yet is no reason to promote it.
func (o *Order) promotion(v plan.View, id plan.JobID) unit.Time {
	j, shape := v.Job(id), v.Shape(id)
	waited := v.WaitedFor(id) - max(unit.Duration(j.Memo[1]), j.Started.Sub(j.Submit))
	ran := float64(v.Service(id)-j.Memo[0]) / float64(max(1, shape.Milli(shape.Gang)))
	return v.Now().Add(unit.Duration(o.config.PromoteAfter*ran) - waited)
}

// Age promotes a job whose patience has run out: what it was served and how long it
// waited are forgiven.
func (o *Order) Age(v plan.View, id plan.JobID) ([2]int64, bool) {
	j := v.Job(id)
	if o.config.PromoteAfter <= 0 || len(o.bounds) == 0 || j.Started == unit.Never ||
		v.Service(id)-j.Memo[0] < o.bounds[0] || o.promotion(v, id) > v.Now() {
		return j.Memo, false
	}
	return [2]int64{v.Service(id), int64(v.WaitedFor(id))}, true
}

// Learn takes a finished job into the next refresh of the Gittins index.
func (o *Order) Learn(v plan.View, id plan.JobID) {
	if o.gittins != nil {
		o.gittins.learn(v.Job(id).Ended, v.Job(id).Service)
	}
}
