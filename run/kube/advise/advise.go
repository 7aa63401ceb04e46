// Package advise is Muster beside another scheduler: it follows what really becomes of
// the gangs of a schedulerName, and decides about the same gangs in a world of its own,
// to tell what Muster would have done and what that would have saved. It has no client
// and no clock: changes of the API server's objects and instants go in, an Advice comes
// out, so it cannot write anything.
//
// The other world is the driver of Kubernetes (package driver) with an engine, on pods
// that are copies. Nodes, and pods of others, are in it as they really are. A gang
// arrives in it in the instant in which it does in reality, with the same requests, and
// runs for as long as it really ran, from when all its pods had a node.
//
// How long that is, is known only when the real run has ended. The other world
// therefore may lie behind: it lives through an instant once everything that decides
// about it is known. A gang that really runs for a minute runs for at least a minute, so
// it lies behind by how much earlier than in reality its gangs were started, and not at
// all where they were not. Lying behind is bounded (Options.Lag): beyond that a gang whose
// length is not known runs on in the other world until it is. Then our figures are too
// bad, and the device time by which they are is told (HeldOnDeviceHours). Figures of both
// worlds are always of the same stretch of time.
//
// What cannot be known is assumed, and Notes tells it to people: a gang is as fast
// wherever it is, starting again after a preemption costs what the gang declares and what
// Options say, and what others do does not depend on what we do.
package advise

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/driver"
	"github.com/musterdl/muster/run/kube/filter"
	"github.com/musterdl/muster/run/kube/inventory"
)

// Options are whom an Adviser follows, and what it decides with.
type Options struct {
	// Scheduler is the schedulerName of the pods that are followed; empty is the default
	// scheduler of Kubernetes.
	Scheduler string
	// All follows single pods without devices too, which are left to reality else.
	All      bool
	Rules    inventory.Rules
	Filter   *filter.Host // checks the constraints of Kubernetes; nil checks none
	Strategy catalogue.Composition
	Seed     uint64
	// Queues makes the tree of queues for the cluster that there is; nil has none.
	Queues func(*cluster.Cluster) (*queue.Tree, error)
	// Lag is how far the other world may lie behind reality to get to know how long
	// gangs run.
	Lag unit.Duration
	// Restart is what each start of a gang after its first costs, beside what it declares
	// for its checkpoints.
	Restart unit.Duration
	Log     *slog.Logger
}

// The usual settings.
const (
	UsualLag     = 6 * unit.Hour
	UsualRestart = unit.Minute
)

// Adviser follows one scheduler. It is for one goroutine.
type Adviser struct {
	options Options
	log     *slog.Logger
	real    *reality
	ahead   []*moment // what reality went through and the other world did not yet
	known   unit.Time // up to when reality is known

	otherWorld

	account   account
	done      []outcome
	decisions []Decision
	decided   int64
}

// otherWorld is where the engine schedules what arrives in reality.
type otherWorld struct {
	began   bool
	since   unit.Time
	now     unit.Time
	wake    unit.Time
	core    *driver.Core
	engine  *engine.Engine
	nature  *nature
	records *records
	jobs    []*job // all, in the order in which they arrived
	asked   []*job // that the engine does not have yet
	live    []*job // that hold devices
	of      map[*story]*job
	byID    map[plan.JobID]*job
	specs   map[plan.JobID]*workload.Job
	events  []engine.Event // that the engine is to be told beside those of the Core
}

// New returns an Adviser that knows nothing yet.
func New(o Options) (*Adviser, error) {
	if o.Scheduler == "" {
		o.Scheduler = corev1.DefaultSchedulerName
	}
	if o.Lag < 0 || o.Restart < 0 {
		return nil, fmt.Errorf("a lag of %v and %v to start again: neither is negative", o.Lag, o.Restart)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Adviser{options: o, log: o.Log, real: newReality(o.Scheduler, o.All, o.Rules), otherWorld: otherWorld{wake: unit.Never,
		of: map[*story]*job{}, byID: map[plan.JobID]*job{}, specs: map[plan.JobID]*workload.Job{}, records: newRecords()}}
	a.nature = newNature(a)
	_, err := a.scheduler()
	return a, err
}

// scheduler makes the strategy that decides in the other world.
func (a *Adviser) scheduler() (catalogue.Built, error) {
	b, err := a.options.Strategy.Build(catalogue.Env{Seed: a.options.Seed}, true)
	if err != nil {
		return b, fmt.Errorf("making the strategy: %w", err)
	}
	return b, nil
}

// Observe takes in a batch of changes; the first has all there is. Instants do not
// decrease.
func (a *Adviser) Observe(at unit.Time, changes []api.Change) error {
	a.ahead = append(a.ahead, a.real.apply(max(at, a.known), changes))
	return a.Advance(at)
}

// Advance lets time pass.
func (a *Adviser) Advance(now unit.Time) error {
	a.known = max(a.known, now)
	for {
		if more, err := a.once(); err != nil || !more {
			return err
		}
	}
}

// once plays what happens next in the other world, and reports whether there may be
// more that it can live through by now.
func (a *Adviser) once() (more bool, err error) {
	if !a.began {
		return len(a.ahead) > 0, a.begin()
	}
	until, _ := a.horizon()
	t := max(a.next(), a.now)
	if t > until && until == a.now {
		return false, nil
	}
	more = t <= until
	a.pass(min(t, until))
	a.happen()
	return more, a.settle()
}

// next is the instant at which something happens next in the other world.
func (a *Adviser) next() unit.Time {
	t := min(a.wake, a.nature.next())
	if len(a.ahead) > 0 {
		t = min(t, a.ahead[0].at)
	}
	for _, j := range a.live {
		if end, known := j.end(a.known); known {
			t = min(t, end)
		}
	}
	return t
}

// horizon is up to when all is known that decides about the other world, and whose
// length is to be known before it goes on.
func (a *Adviser) horizon() (until unit.Time, waits *job) {
	until = a.known
	for _, j := range a.live {
		if end, known := j.end(a.known); !known && end < until {
			until, waits = end, j
		}
	}
	return max(until, a.known.Add(-a.options.Lag), a.now), waits
}

// happen plays what happens at the present instant.
func (a *Adviser) happen() {
	a.core.Tick()
	for len(a.ahead) > 0 && a.ahead[0].at <= a.now {
		m := a.ahead[0]
		a.ahead[0] = nil
		a.ahead = a.ahead[1:]
		a.play(m)
	}
	a.nature.happen(a.now)
	for _, j := range slices.Clone(a.live) {
		if end, known := j.end(a.known); known && end <= a.now && j.began != unit.Never {
			a.finish(j, end)
		}
	}
}

// play has what changed in reality happen in the other world.
func (a *Adviser) play(m *moment) {
	a.nature.changed(m.changes)
	for i := range m.arrive {
		a.arrive(m.arrive[i])
	}
	for i := range m.turns {
		if j := a.of[m.turns[i].story]; j != nil {
			a.account.change(a.now, j, func() { j.real = m.turns[i].turn })
			if j.real.over {
				a.ended(j)
			}
		}
	}
}

func (a *Adviser) arrive(x arrival) {
	j := a.of[x.story]
	if j == nil {
		j = &job{story: x.story, id: plan.None, execution: execution{began: unit.Never, ready: unit.Never, leaves: unit.Never}, first: unit.Never, over: unit.Never}
		a.of[x.story] = j
		a.jobs, a.asked = append(a.jobs, j), append(a.asked, j)
	}
	if j.over == unit.Never {
		a.nature.put(j, x.pod)
	}
}

// ended takes in that a gang has ended in reality: one that never ran there has no
// length, and is withdrawn here too.
func (a *Adviser) ended(j *job) {
	switch {
	case j.over != unit.Never:
		a.compare(j)
	case j.story.never() || j.id == plan.None:
		a.drop(j)
	}
}

// drop ends a job that is compared with nothing.
func (a *Adviser) drop(j *job) {
	j.dropped = true
	if j.id == plan.None {
		a.close(j)
		return
	}
	a.events = append(a.events, engine.Event{Kind: engine.Cancel, Job: j.id})
}

// finish ends a run that has run for as long as it really did; end is when it would
// have ended, had that been known in time.
func (a *Adviser) finish(j *job, end unit.Time) {
	a.account.heldOn = a.account.heldOn.Plus(unit.Use(j.milli, max(a.now.Sub(end), 0)))
	a.core.End(j.id)
	a.nature.clear(j)
}

// close is for a job that is over in the other world, whatever its end.
func (a *Adviser) close(j *job) {
	a.account.change(a.now, j, func() { j.over = a.now })
	a.nature.clear(j)
	a.asked = slices.DeleteFunc(a.asked, func(x *job) bool { return x == j })
	if j.real.over {
		a.compare(j)
	}
}

// begin puts the other world together from the first batch of changes.
func (a *Adviser) begin() error {
	if len(a.ahead) == 0 {
		return nil
	}
	a.began, a.since, a.now = true, a.ahead[0].at, a.ahead[0].at
	a.account.begin(a.now)
	first := a.ahead[0]
	a.ahead = a.ahead[1:]
	a.core = a.newCore()
	a.nature.changed(first.changes)
	a.nature.tell()
	if err := a.assemble(); err != nil {
		return err
	}
	if a.options.Queues != nil {
		tree, err := a.options.Queues(a.engine.View().Cluster())
		if err != nil {
			return err
		}
		if tree != nil {
			a.step([]engine.Event{{Kind: engine.Shares, Queues: tree}})
		}
	}
	first.changes = nil
	a.play(first)
	return a.settle()
}

func (a *Adviser) newCore() *driver.Core {
	return driver.New(driver.Config{Scheduler: schedulerName, Rules: a.options.Rules, Filter: a.options.Filter, Supposed: true,
		Pods: a.nature, Owners: a.nature, Records: a.records, Ledgers: a.records, Voice: a.nature,
		Fence: "1/advise", Now: func() unit.Time { return a.now }, Log: a.log})
}

// assemble puts the engine together from what the Core was told, and what was kept of
// jobs before.
func (a *Adviser) assemble() error {
	ctx := context.Background()
	kept, err := a.records.ListJobs(ctx)
	if err != nil {
		return err
	}
	ledger, found, err := a.records.GetLedger(ctx, schedulerName)
	if err != nil {
		return err
	}
	b, err := a.core.Begin(ledger, found, kept)
	if err != nil {
		return fmt.Errorf("putting the other world together: %w", err)
	}
	state, err := plan.Load(b.Image.State)
	if err != nil {
		return fmt.Errorf("putting the other world together: %w", err)
	}
	built, err := a.scheduler()
	if err != nil {
		return err
	}
	a.engine = engine.Restore(state, built.Scheduler, engine.DefaultPolicy())
	a.step([]engine.Event{{Kind: engine.Assembled, Image: b.Image}})
	a.measure()
	return nil
}

// anew begins with another Core where the one there was cannot go on: there is a model
// of devices that it does not know, or a node has grown.
func (a *Adviser) anew() error {
	a.log.Info("the other world is put together anew", "why", a.core.Broken())
	a.core.Told(driver.Gather(a.engine.State(), &engine.Out{}, true))
	for tasks := a.core.Keep(1 << 20); len(tasks) > 0; tasks = a.core.Keep(1 << 20) {
		a.do(tasks)
	}
	a.core = a.newCore()
	a.core.Take(a.nature.all())
	return a.assemble()
}

func (a *Adviser) spec(id plan.JobID) *workload.Job {
	if s := a.specs[id]; s != nil {
		return s
	}
	return &workload.Job{Name: "gone", Resources: workload.Resources{Gang: 1, Share: unit.Whole}}
}

// settle lets everything happen that follows at this instant.
func (a *Adviser) settle() error {
	for range mostRounds {
		told := a.nature.tell()
		events := a.accepted(append(a.core.Events(), a.events...))
		a.events = a.events[:0]
		if len(events) > 0 || a.engine.Due(a.now) {
			a.step(events)
		}
		tasks := append(a.core.Tasks(), a.core.Keep(1<<20)...)
		a.do(tasks)
		if !told && len(events) == 0 && len(tasks) == 0 && len(a.events) == 0 {
			if a.core.Broken() == "" {
				return nil
			}
			if err := a.anew(); err != nil {
				return err
			}
		}
	}
	a.log.Error("the other world does not come to rest", "at_us", int64(a.now))
	return nil
}

// mostRounds is more than anything takes to settle.
const mostRounds = 1000

// accepted are the events that the engine is told. When gangs end and are held is known
// here, so what the Core makes of that is left out; sizes are those that gangs really
// had.
func (a *Adviser) accepted(events []engine.Event) []engine.Event {
	n := len(events) - len(a.events)
	list := events[:0]
	for i, e := range events {
		switch e.Kind {
		case engine.Cancel, engine.Hold, engine.Release:
			if i < n || a.engine.Accept(&e) != nil {
				continue
			}
		case engine.Submit:
			e.Spec.Sizes = nil
			if err := a.engine.Accept(&e); err != nil {
				a.log.Warn("a gang cannot be followed", "job", e.Spec.Name, "error", err)
				a.core.Refused(e.Spec.Name, err)
				continue
			}
		}
		list = append(list, e)
	}
	return list
}

func (a *Adviser) do(tasks []driver.Task) {
	for i := range tasks {
		tasks[i].Then(tasks[i].Do(context.Background()))
	}
}

// step has the engine decide, and orders what it decided.
func (a *Adviser) step(events []engine.Event) {
	out := a.engine.Step(a.now, events)
	a.wake = out.Wake
	a.left()
	v := a.engine.View()
	if slices.ContainsFunc(events, aboutNodes) {
		a.measure()
	}
	a.core.Told(driver.Gather(a.engine.State(), &out, false))
	a.submitted(events)
	for i := range events {
		if j := a.byID[events[i].Job]; j != nil && events[i].Kind == engine.Started {
			a.started(j)
		}
	}
	orders := make([]run.Order, 0, len(out.Ready))
	for i := range out.Ready {
		c := &out.Ready[i]
		orders = append(orders, run.Carry(v, c, a.spec))
		if c.Verb == plan.Start {
			a.starts(a.byID[c.Job], c.Run)
		}
	}
	for _, id := range out.Over {
		if j := a.byID[id]; j != nil {
			a.close(j)
		}
	}
	if out.Commit != nil {
		for i := range out.Commit.Changes {
			a.tell(&out.Commit.Changes[i])
		}
	}
	for _, o := range orders {
		a.core.Order(o)
	}
}
