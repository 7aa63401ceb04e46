// Package ahead is the engine run forward from a live state: one mechanism behind
// the answers to why, when and what if, and behind strategies in the shadow of the
// active one.
//
// A fork is a copy of the State, a Scheduler whose caches are built from it, and a
// simulated nature that holds what is believed: how long each job runs (Beliefs), who
// is still to come (Arrivals), what else will happen (Later). In that nature the fork
// decides, byte for byte, what the live engine would decide if the beliefs were true.
//
// The package reads no clock and draws no chance: equal configurations give equal
// futures. Work is bounded by a number of steps and by a context.
package ahead

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/schedule"
)

// Config is one future to be looked at.
type Config struct {
	// State is what is so now. It is copied, never changed; nobody may change it
	// meanwhile.
	State *plan.State
	// Now is the instant of the fork, by default and at least the State's own. What was
	// believed to happen before it and has not is doubted by the Beliefs.
	Now unit.Time
	// Scheduler makes what decides; each future has one of its own. Switched says that
	// it is another strategy than the one that has decided so far: what only that one
	// understood is taken back first, as when a live cluster changes its strategy.
	Scheduler func() (schedule.Scheduler, error)
	Switched  bool
	Policy    engine.Policy
	// TellTruth tells the estimators oracle and noisy what is believed, as the truth.
	TellTruth bool

	// Beliefs are the running times of the jobs there are; nil is what the engine
	// itself believes (Believed). Sampled ones stand for chance.
	Beliefs Beliefs
	// Arrivals make the jobs still to come with their running times, in order, anew for
	// every future; nil is none. The names of all jobs differ.
	Arrivals func() simulated.Source
	// First are fed at the first instant, Later at theirs: another tree of queues,
	// people's requests, nodes that are lost or come back. Jobs come by Arrivals only.
	First []engine.Event
	Later []simulated.Later
	// Start is what starting a run takes besides restoring the job's work.
	Start unit.Duration

	// Horizon is how far to look, by default four weeks.
	Horizon unit.Duration
	// Asked ends the future as soon as all of these jobs have ended; none is all jobs.
	Asked []plan.JobID
	// Steps bounds the work: how often the engine may be called, by default ten million
	// times.
	Steps int64
	// Limits bound the pictures.
	Limits report.Limits
	// Decisions gets the canonical line of every commit, nil for none.
	Decisions io.Writer
	// Step is called after every step of the engine, and Progress after every instant,
	// where they are set.
	Step     func(at unit.Time, events []engine.Event, out *engine.Out, v plan.View)
	Progress func(now unit.Time, submitted, ended int64)
}

// The bounds used where none are given.
const (
	DefaultHorizon = 28 * unit.Day
	DefaultSteps   = 10_000_000
)

// Future is what happens.
type Future struct {
	// From and To are the instants between which it was looked at, Ended why no
	// further.
	From, To unit.Time
	Ended    Ending
	// Fates are of the jobs that had not ended at From, and then of those that came, by
	// their ids; the jobs of ids below First were there before.
	Fates []Fate
	First plan.JobID
	// Result sums up and View draws what was looked at: the books begin at From, and
	// the means are of jobs that finished in it.
	Result report.Result
	View   report.View
	Steps  int64
}

// Find returns the fate of a job by its name.
func (f *Future) Find(name string) (Fate, bool) {
	for i := range f.Fates {
		if f.Fates[i].Name == name {
			return f.Fates[i], true
		}
	}
	return Fate{}, false
}

// Victims are the fates of the jobs that have to make way for a job.
func (f *Future) Victims(job plan.JobID) (victims []Fate) {
	for i := range f.Fates {
		if slices.ContainsFunc(f.Fates[i].Displaced, func(d Displacement) bool { return d.By == job }) {
			victims = append(victims, f.Fates[i])
		}
	}
	return victims
}

// Ending is why a future goes no further.
type Ending string

// The endings of a future.
const (
	AllOver     Ending = "all over" // nothing is left that could happen
	AllAnswered Ending = "answered" // the jobs that were asked about have ended
	AtHorizon   Ending = "horizon"
	OutOfSteps  Ending = "out of steps"
)

// Fate is what becomes of one job.
type Fate struct {
	Job     plan.JobID
	Name    string
	Submit  unit.Time
	Devices unit.Milli // that its gang holds
	// Active says that it had a run at the fork. Start is when it first begins to
	// compute from then on; Never is not in this future. Planned is when that start was
	// decided.
	Active         bool
	Planned, Start unit.Time
	End            unit.Time // Never is not in this future
	Outcome        report.Outcome
	// Waited is for how long in all, before the fork included.
	Waited    unit.Duration
	Displaced []Displacement // from the fork on
	Reason    plan.Reason    // why it is where it is in the end
}

// Displacement is a run that had to go.
type Displacement struct {
	At unit.Time
	By plan.JobID // for whom; None where that was no one job
	// Reason is what was said to the job.
	Reason plan.Reason
}

// Run looks at one future.
func Run(ctx context.Context, config Config) (Future, error) {
	var m Memory
	return m.Run(ctx, config)
}

// Memory is what futures are looked at in, one after another: used again it spares
// the making of it. The zero Memory is ready; it is not safe for concurrent use.
type Memory struct {
	state plan.State
	fates []int32 // by job: its place in Future.Fates, or None
}

// Run looks at one future; of the one before only what it returned remains.
func (m *Memory) Run(ctx context.Context, config Config) (Future, error) {
	sched, err := config.Scheduler()
	if err != nil {
		return Future{}, fmt.Errorf("making the scheduler of a future: %w", err)
	}
	config.State.CopyInto(&m.state)
	r := &runner{config: config, memory: m}
	if r.config.Steps == 0 {
		r.config.Steps = DefaultSteps
	}
	r.future = Future{From: max(config.Now, config.State.Now), First: plan.JobID(len(config.State.Jobs))}
	r.takeFates()
	collector := report.NewCollector(config.Limits)
	r.sim, err = simulated.New(r.simulation(sched, collector))
	if err != nil {
		return Future{}, fmt.Errorf("beginning a future: %w", err)
	}
	if err := r.advance(ctx); err != nil {
		return Future{}, err
	}
	if err := r.finish(collector); err != nil {
		return Future{}, err
	}
	return r.future, nil
}

// runner is one future under way.
type runner struct {
	config Config
	memory *Memory
	sim    *simulated.Simulation
	future Future
	asked  int // jobs asked about that have not ended
}

// simulation is the nature of the beliefs.
func (r *runner) simulation(sched schedule.Scheduler, collector *report.Collector) simulated.Config {
	c := &r.config
	state := &r.memory.state
	horizon := c.Horizon
	if horizon == 0 {
		horizon = DefaultHorizon
	}
	first := c.First
	if c.Switched {
		state.Memory = nil // no other strategy's is recalled
		first = append([]engine.Event{{Kind: engine.Switched}}, first...)
	}
	beliefs := c.Beliefs
	v := c.State.View()
	if beliefs == nil {
		beliefs = Believed(v, r.future.From)
	}
	if c.TellTruth {
		for id := range plan.JobID(v.Jobs()) {
			if j := v.Job(id); !j.Phase.Over() && j.Oracle == 0 {
				first = append(first, engine.Event{Kind: engine.Truth, Job: id, Span: beliefs(v, id)})
			}
		}
	}
	arrivals := Arriving(nil)
	if c.Arrivals != nil {
		arrivals = c.Arrivals
	}
	known := func(v plan.View, id plan.JobID) world.Known {
		return world.Known{Truth: workload.Truth{Duration: beliefs(v, id), Deaf: v.Job(id).Checkpoint.Failed}, Done: done(v, id), Menu: v.Menu(id)}
	}
	return simulated.Config{Beginning: simulated.Beginning{From: state, At: r.future.From, Known: known, First: first},
		Later: c.Later, Jobs: arrivals(), Scheduler: sched, Policy: c.Policy,
		TellTruth: c.TellTruth, Prices: simulated.Prices{Start: c.Start}, Until: r.future.From.Add(horizon), Collector: collector, Decisions: c.Decisions,
		Hooks: simulated.Hooks{Step: r.step, Progress: c.Progress}}
}

// takeFates makes a fate for every job that has not ended.
func (r *runner) takeFates() {
	m, v := r.memory, r.config.State.View()
	m.fates = m.fates[:0]
	live := 0
	for i := range r.config.State.Jobs {
		if !r.config.State.Jobs[i].Phase.Over() {
			live++
		}
	}
	r.future.Fates = make([]Fate, 0, live)
	for id := range plan.JobID(v.Jobs()) {
		m.fates = append(m.fates, plan.None)
		if !r.config.State.Jobs[id].Phase.Over() {
			r.addFate(v, id)
		}
	}
	for _, id := range r.config.Asked {
		if id >= 0 && int(id) < len(m.fates) && m.fates[id] != plan.None {
			r.asked++
		}
	}
}

func (r *runner) addFate(v plan.View, id plan.JobID) {
	shape := v.Shape(id)
	r.memory.fates[id] = int32(len(r.future.Fates))
	r.future.Fates = append(r.future.Fates, Fate{Job: id, Name: v.Name(id), Submit: v.Job(id).Submit,
		Devices: unit.Milli(shape.Milli(shape.Gang)), Active: v.Job(id).Run != plan.None,
		Planned: unit.Never, Start: unit.Never, End: unit.Never})
}

// fate is the fate of a job; nil of one that had ended before.
func (r *runner) fate(id plan.JobID) *Fate {
	if id < 0 || int(id) >= len(r.memory.fates) || r.memory.fates[id] == plan.None {
		return nil
	}
	return &r.future.Fates[r.memory.fates[id]]
}

// step notes what a step of the engine means to jobs.
func (r *runner) step(at unit.Time, events []engine.Event, out *engine.Out, v plan.View) {
	r.future.Steps++
	for len(r.memory.fates) < v.Jobs() {
		id := plan.JobID(len(r.memory.fates))
		r.memory.fates = append(r.memory.fates, plan.None)
		r.addFate(v, id)
		r.fate(id).Active = false // it came later
	}
	for i := range events {
		if e := &events[i]; e.Kind == engine.Started {
			if f := r.fate(e.Job); f != nil && f.Start == unit.Never && v.Job(e.Job).Attempt == e.Attempt {
				f.Start = at
			}
		}
	}
	if out.Commit != nil {
		for i := range out.Commit.Changes {
			r.changed(at, &out.Commit.Changes[i])
		}
	}
	for _, id := range out.Over {
		if r.fate(id) != nil {
			r.fate(id).End = at
			r.answered(id)
		}
	}
	if r.config.Step != nil {
		r.config.Step(at, events, out, v)
	}
}

// answered counts off a job that was asked about.
func (r *runner) answered(id plan.JobID) {
	for _, asked := range r.config.Asked {
		if asked == id {
			r.asked--
		}
	}
}

// changed notes what a change means to its job.
func (r *runner) changed(at unit.Time, c *plan.Change) {
	f := r.fate(c.Job)
	if f == nil {
		return
	}
	switch c.Verb {
	case plan.Start:
		if f.Planned == unit.Never {
			f.Planned = at
		}
	case plan.Refuse:
		f.End = at
	case plan.Stop, plan.Suspend, plan.Withdraw:
		switch c.Reason.Code {
		case plan.ByUser, plan.NodeLost:
			return
		}
		by := plan.JobID(plan.None)
		switch c.Reason.Code {
		case plan.MadeWayFor, plan.Reclaimed, plan.Outranked, plan.Defragmented:
			by = plan.JobID(c.Reason.A)
		}
		f.Displaced = append(f.Displaced, Displacement{At: at, By: by, Reason: c.Reason})
	}
}

// advance runs the future to its end.
func (r *runner) advance(ctx context.Context) error {
	r.future.Ended = AtHorizon
	for {
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("looking ahead: %w", ctx.Err())
		case len(r.config.Asked) > 0 && r.asked == 0:
			r.future.Ended = AllAnswered
			return nil
		case r.future.Steps >= r.config.Steps:
			r.future.Ended = OutOfSteps
			return nil
		}
		runtime.Gosched() // whoever waits for an answer of the control plane goes first
		more, err := r.sim.Advance()
		if err != nil {
			return fmt.Errorf("looking ahead: %w", err)
		}
		if !more {
			if r.sim.Next() == unit.Never {
				r.future.Ended = AllOver
			}
			return nil
		}
	}
}

// finish sums up.
func (r *runner) finish(collector *report.Collector) (err error) {
	v := r.sim.State().View()
	r.future.To = v.Now()
	if r.future.Result, err = r.sim.Result(); err != nil {
		return fmt.Errorf("summing up a future: %w", err)
	}
	r.future.View = collector.View()
	for i := range r.future.Fates {
		f := &r.future.Fates[i]
		j := v.Job(f.Job)
		f.Waited, f.Reason, f.Outcome = v.WaitedFor(f.Job), j.Reason, simulated.Outcome(j)
	}
	return nil
}
