// Package muster is the house order: first the job whose completion is expected to cost the least
// device time, by how long jobs like it ran. Nobody has to declare anything.
//
// A job that has run for so long ends within the next hour with some chance, and for that an hour of its
// devices is spent, or less. The job of which a completion costs least goes first, with the look-ahead that
// suits each best (Gittins, J. R. Stat. Soc. B 1979), times its devices. Where nothing is known, any doubling
// of a running time is as likely as any other: that ranks jobs by attained service, as LAS does. Package
// lifetime learns the rest from jobs that finished and jobs that still run.
//
// Where none of a kind has ended, its first end tells how long all of them take. So the first is ranked by what a
// completion of all who wait costs: a kind that nobody knows is tried.
//
// Ranks change where that pays. A start, with the job's own saving and loading, is lost before a job that
// waits gets on, so a job looks far enough ahead to earn that back, and must be expected to cost less by a
// part besides, since costs are estimates. Whether others are stopped for it, package law weighs by the same
// costs. Of a gang of more than half the cluster half the device time counts: while only such gangs wait, up
// to half of the devices stay idle.
//
// Of a job with a declared time the order learns what part of it such jobs take, so a declaration is worth
// what its user's earlier ones were. One report of progress of each job counts likewise: whoever reports ten
// times the progress that he made gains nothing.
//
// Left out: later reports; the hour and the day of the week, which tell at most 1 % of how the times of gangs
// differ. Who ranks last waits for as long as others come, unless an age is set: on Venus an age of two days
// brings the longest wait from sixty days to thirteen, and mean JCT up by 9 %.
package muster

import (
	"fmt"
	"strings"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile/lifetime"
	"github.com/musterdl/muster/schedule"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "muster", Part: schedule.OrderPart, Status: "after",
	Source: "after Gittins (J. R. Stat. Soc. B 1979); counted over devices as Gu et al., NSDI 2019",
	Idea:   "the least device time for a completion, by how long jobs like it ran",
	Goal:   "throughput", Needs: "nothing; learns from finished jobs, their commands, declared times and reports of progress where there are; an estimator beside it changes no rank",
	Live: "preempts by checkpoint and restart",
}

// Config tunes what is learned.
type Config struct {
	// Refresh is how often finished jobs are taken in, and sooner where a sixteenth more are known; ranks of waiting jobs hold in between.
	Refresh unit.Duration `yaml:"refresh" above:"0"`
	// Prior is how many jobs of one's own group weigh as much as what coarser groups say.
	Prior float64 `yaml:"prior" above:"0"`
	// Switch is the running time that a start is taken to cost besides the job's own saving and
	// loading. Nobody is looked at again before having run for so long.
	Switch unit.Duration `yaml:"switch" least:"0"`
	// Gain is by what part a job that waits must be expected to cost less than one that runs.
	Gain float64 `yaml:"gain" least:"0"`
	// Age bounds waits: a job costs the less the longer it has waited, and at Age nothing, so that it
	// goes first. Waits count as if devices were shared evenly: where jobs ask for thrice the
	// cluster they age three times slower. 0 is never.
	Age unit.Duration `yaml:"age" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config {
	return Config{Refresh: unit.Hour, Prior: 30, Switch: unit.Minute, Gain: .25}
}

// Order is the strategy.
type Order struct {
	config Config
	past   *lifetime.Past
}

var (
	_ schedule.Order   = (*Order)(nil)
	_ schedule.Pupil   = (*Order)(nil)
	_ schedule.Weigher = (*Order)(nil)
	_ schedule.Knower  = (*Order)(nil)
)

// New returns the order; the configuration must be valid.
func New(c Config) *Order {
	return &Order{c, lifetime.New(lifetime.Config{Refresh: c.Refresh, Prior: c.Prior})}
}

// Rules let jobs displace those that rank behind them.
func (o *Order) Rules() schedule.Rules { return schedule.Rules{Preempt: true} }

// Key is the priority, then the device time that a completion is expected to cost. It holds until
// finished jobs are taken in again, and of a running job until its next step of running time. Who
// waits has a start before it, and what it saves and loads: whoever takes the room of others makes
// them pay about as much.
func (o *Order) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
	cost, until := o.cost(v, id)
	shape := v.Shape(id)
	if o.past.Alone(v, id) {
		cost /= 2
	}
	// In microseconds of a thousandth of a device, as the State counts service.
	const most = 1 << 60
	return schedule.Key{-int64(v.Priority(id)), int64(min(most, cost*1e6*float64(shape.Milli(shape.Gang))))}, until
}

// Cost is the running time that a completion is expected to cost.
func (o *Order) Cost(v plan.View, id plan.JobID) float64 {
	cost, _ := o.cost(v, id)
	return cost
}

// Alike is how much alike the jobs of one name, user and size are found to be.
func (o *Order) Alike(v plan.View, a, b plan.JobID) float64 { return o.past.Alike(v, a, b) }

// Ran is for how many seconds a job has run.
func (o *Order) Ran(v plan.View, id plan.JobID) float64 { return lifetime.Ran(v, id) }

func (o *Order) cost(v plan.View, id plan.JobID) (cost float64, until unit.Time) {
	j, shape := v.Job(id), v.Shape(id)
	t, scale := o.past.Told(v, id)
	devices, ran, start := shape.Milli(shape.Gang), lifetime.Ran(v, id), o.config.Switch.Seconds()
	from, next := lifetime.StepOf(ran/scale), 0.
	if ran < start {
		from, next = 0, start
	} else {
		next = lifetime.Begins[from+1] * scale
	}
	until = o.past.Until()
	if j.Run != plan.None && v.Run(j.Run).Status == plan.Running {
		// One that runs on other workers than it asked for is as much faster or slower.
		rate := float64(shape.Milli(v.Run(j.Run).Workers)) / float64(max(1, devices))
		until = min(until, v.Now().Add(max(1, unit.Seconds((next-ran)/max(1e-3, rate)))))
		cost = t.Index(from) * scale
		if n := o.past.Others(v, id); n > 0 {
			cost = min(cost, t.Together(from, 0, n)*scale)
		}
	} else {
		lost := start + (j.Checkpoint.Save + j.Checkpoint.Load).Seconds()
		cost = t.After(from, lost/scale)
		if n := o.past.Others(v, id); n > 0 {
			cost = min(cost, t.Together(from, lost/scale, n))
		}
		cost *= scale * (1 + o.config.Gain)
	}
	if o.config.Age > 0 {
		cost *= max(1e-9, 1-o.past.FairWait(v, id)/o.config.Age.Seconds())
	}
	return cost, until
}

// Learn takes in how long a finished job ran.
func (o *Order) Learn(v plan.View, id plan.JobID) { o.past.Learn(v, id) }

// Since is when what is known by now was so.
func (o *Order) Since(v plan.View) unit.Time { return o.past.Since(v) }

// Known says by how many finished jobs a job is ranked, that none are known, and whether the latest
// like it are of another length than those before.
func (o *Order) Known(v plan.View, id plan.JobID) []string {
	k := o.past.Known(v, id)
	what := "how long it runs"
	if j := v.Job(id); j.Declared > 0 {
		what = "what part of its declared time it takes"
	}
	var lines []string
	if k.Foretold > 0 {
		lines = []string{fmt.Sprintf("by its report it runs for %s in all", k.Foretold)}
		if k.Reported[0] == 0 {
			lines[0] += ", which counts for nothing before jobs that reported have finished"
		} else {
			lines = append(lines, toldBy("what part of that it takes", "reported and finished", k.Reported[:]))
		}
	}
	if k.Finished[0] == 0 {
		return append(lines, fmt.Sprintf("nothing is known of %s, so jobs that have used the least device time go first", what))
	}
	lines = append(lines, toldBy(what, "finished", k.Finished[:]))
	switch {
	case k.Latest >= 1:
		lines = append(lines, fmt.Sprintf("the latest %d like it took %.1f times as long as the %d before", k.Jobs, k.Latest, k.Before))
	case k.Latest > 0:
		lines = append(lines, fmt.Sprintf("the latest %d like it took %.1f times less than the %d before", k.Jobs, 1/k.Latest, k.Before))
	}
	return lines
}

// toldBy says how many jobs tell something, the nearest first.
func toldBy(what, did string, groups []int) string {
	var by []string
	for i, like := range [...]string{"like it", "of whatever name", "of whatever command", "of whatever user", "of whatever tenant", "of whatever kind", "of whatever size"} {
		// Where a finer group has as many, the coarser ones add nothing.
		if n := groups[len(groups)-1-i]; i == 0 || n != groups[len(groups)-i] {
			by = append(by, fmt.Sprintf("%d %s", n, like))
		}
	}
	if groups[len(groups)-1] == 0 {
		return fmt.Sprintf("no job like it has %s; %s is told by others: %s", did, what, strings.Join(by[1:], ", "))
	}
	return fmt.Sprintf("%s is told by the jobs that have %s: %s", what, did, strings.Join(by, ", "))
}
