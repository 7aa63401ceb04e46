// Package muster is the house order: first the job whose completion is expected to cost the least
// device time, by how long jobs like it ran. Nobody has to declare anything.
//
// A job that has run for so long ends within the next hour with some chance, and for that an hour
// of its devices is spent, or less. The job of which a completion costs least goes first, with the
// look-ahead that suits each best (Gittins, J. R. Stat. Soc. B 1979), times its devices. Where
// nothing is known any doubling of a running time is as likely as any other: that ranks jobs by
// attained service, as LAS does. What finished jobs of like size, kind, tenant and user tell moves
// the rank from there, step by step of running time, so that a few of them do not outweigh what
// many others say. Jobs that still run are heard too: without them long ones would be unknown for
// as long as they are long.
//
// Of a job with a declared time the part of it that such jobs take is learned in the same way, so
// that a declaration is worth what its user's earlier ones were. Left out: names, commands and the
// time of day.
package muster

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "muster", Part: schedule.OrderPart, Status: "after",
	Source: "after Gittins (J. R. Stat. Soc. B 1979); counted over devices as Gu et al., NSDI 2019",
	Idea:   "the least device time for a completion, by how long jobs like it ran",
	Goal:   "throughput", Needs: "nothing; learns from finished jobs, and from declared times where there are",
	Live: "preempts by checkpoint and restart",
}

// Config tunes what is learned.
type Config struct {
	// Refresh is how often finished jobs are taken in; ranks of waiting jobs hold in between.
	Refresh unit.Duration `yaml:"refresh" above:"0"`
	// Prior is how many jobs of one's own group weigh as much as what coarser groups say.
	Prior float64 `yaml:"prior" above:"0"`
	// Switch is the running time that a waiting job is taken to cost besides its own: the start,
	// and what the run that it displaces loses.
	Switch unit.Duration `yaml:"switch" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Refresh: unit.Hour, Prior: 30, Switch: unit.Minute} }

// Order is the strategy.
type Order struct {
	config Config
	past   *past
}

var (
	_ schedule.Order   = (*Order)(nil)
	_ schedule.Learner = (*Order)(nil)
)

// New returns the order; the configuration must be valid.
func New(c Config) *Order { return &Order{c, newPast(c)} }

// Rules let jobs displace those that rank behind them.
func (o *Order) Rules() schedule.Rules { return schedule.Rules{Preempt: true} }

// Key is the priority, then the device time that a completion is expected to cost. It holds until
// finished jobs are taken in again, and of a running job until its next step of running time.
func (o *Order) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
	j, shape := v.Job(id), v.Shape(id)
	o.past.refresh(v)
	devices, scale := shape.Milli(shape.Gang), scaleOf(&j)
	ran := ranFor(v.Service(id), shape)
	t := o.past.tableOf(groupOf(v, id))
	step := stepOf(ran / scale)
	cost, chance := t.index(step)
	cost *= scale
	until := o.past.refreshed()
	if j.Run != plan.None && v.Run(j.Run).Status == plan.Running {
		// One that runs on other workers than it asked for is as much faster or slower.
		rate := float64(shape.Milli(v.Run(j.Run).Workers)) / float64(max(1, devices))
		until = min(until, v.Now().Add(max(1, unit.Seconds((begins(step+1)*scale-ran)/max(1e-3, rate)))))
	} else {
		cost += o.config.Switch.Seconds() / chance
	}
	// In microseconds of a thousandth of a device, as the State counts service.
	const most = 1 << 60
	return schedule.Key{-int64(j.Priority), int64(min(most, cost*1e6*float64(devices)))}, until
}

// Learn takes in how long a finished job ran.
func (o *Order) Learn(v plan.View, id plan.JobID) {
	j := v.Job(id)
	o.past.ended = append(o.past.ended, sample{groupOf(v, id), j.Ended, ranFor(j.Service, v.Shape(id)) / scaleOf(&j)})
}

// ranFor is the running time, in seconds, on the workers that a job asked for.
func ranFor(service int64, shape *plan.Shape) float64 {
	return float64(service) / float64(max(1, shape.Milli(shape.Gang))) / 1e6
}

// scaleOf is what running times of a job are counted in: in seconds, or, of one whose time was declared, so that an hour
// is what was declared.
func scaleOf(j *plan.Job) float64 {
	if j.Declared > 0 {
		return j.Declared.Seconds() / 3600
	}
	return 1
}
