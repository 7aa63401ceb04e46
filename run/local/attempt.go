package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
)

// attempt is one run under way: a gang of supervised workers.
type attempt struct {
	driver *Driver
	order  run.Order
	dirs   []string // by rank
	seen   []seen   // by rank
	of     int64    // steps that the job said it has in all
	pace   pace
	// company says that guests came or went since the pace was looked at.
	company atomic.Bool
	plan    planning

	mu       sync.Mutex
	stopping bool
	asleep   bool          // should be
	granted  *run.Order    // what the workers should be held to, where they have to be told; nil is none
	changed  chan struct{} // receives when one of the above changes
}

// poll is how often records are looked at.
const poll = 50 * time.Millisecond

func newAttempt(d *Driver, o run.Order) *attempt {
	a := &attempt{driver: d, order: o, seen: make([]seen, len(o.Workers)), changed: make(chan struct{}, 1),
		stopping: o.Status == plan.Stopping, asleep: o.Status == plan.Suspended}
	for rank := range o.Workers {
		a.dirs = append(a.dirs, d.MemberDir(o.Name, o.Attempt, int32(rank)))
	}
	return a
}

// stop asks the attempt to end.
func (a *attempt) stop() {
	a.mu.Lock()
	a.stopping = true
	a.mu.Unlock()
	a.wake()
}

// suspend asks the attempt to rest, or to go on.
func (a *attempt) suspend(rest bool) {
	a.mu.Lock()
	a.asleep = rest
	a.mu.Unlock()
	a.wake()
}

// regrant holds the workers to what they are granted from now on.
func (a *attempt) regrant(o run.Order) {
	a.mu.Lock()
	a.granted = &o
	a.mu.Unlock()
	a.wake()
}

// tellGrants tells the workers what they are granted, if it is news.
func (a *attempt) tellGrants() {
	a.mu.Lock()
	granted := a.granted
	a.granted = nil
	a.mu.Unlock()
	if granted == nil {
		return
	}
	for rank := range granted.Workers {
		if a.seen[rank].ended != nil {
			continue
		}
		a.send(rank, supervise.Grant(a.driver.config.limits(granted, &granted.Workers[rank])))
		if n := granted.Terms.Share.Batch; n > 0 {
			a.send(rank, supervise.Batch(n))
		}
	}
	a.tellPlan(granted)
}

func (a *attempt) wake() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

func (a *attempt) wants() (stopping, asleep bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopping, a.asleep
}

// run follows the attempt to its end and returns the event of it.
func (a *attempt) run() engine.Event {
	if err := a.launch(); err != nil {
		a.driver.config.Log.Error("starting a gang", "attempt", a.String(), "error", err)
		a.abort()
		if errors.As(err, new(*objection.Objection)) || errors.As(err, new(*mistake)) {
			return a.broke(engine.Exited, plan.UserFailure, err.Error()) // no reason to think that this machine is sick
		}
		if supervise.Passing(err) {
			return a.broke(engine.NotStarted, plan.Hindered, err.Error())
		}
		return a.broke(engine.NotStarted, plan.StartFailure, err.Error())
	}
	a.plan.file = a.begunBy()
	if e, ok := a.prepare(); !ok {
		return e
	}
	return a.follow()
}

// mistake is an error that lies in what the job asks for: it cannot be run anywhere.
type mistake struct{ error }

// Unwrap returns what is wrong.
func (m *mistake) Unwrap() error { return m.error }

// launch starts the supervisors that are not there yet.
func (a *attempt) launch() error {
	if a.order.Status != plan.Promised && a.order.Status != plan.Starting {
		return nil // found again: they were started by the plane that crashed
	}
	if list := a.driver.Objections(a.order.Spec); len(list) > 0 {
		return list[0]
	}
	if err := a.unfold(); err != nil {
		return err
	}
	port, err := a.port()
	if err != nil {
		return fmt.Errorf("choosing a port: %w", err)
	}
	for rank := range a.order.Workers {
		spec, err := a.spec(rank, port)
		if err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
		if err := spec.Validate(); err != nil {
			return fmt.Errorf("rank %d: %w", rank, &mistake{err})
		}
		if a.seen[rank].coming, err = supervise.Launch(spec, a.driver.config.Exe); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

// unfold makes what the run is told of its plan, where that is a model's, of the shape that was kept.
func (a *attempt) unfold() error {
	o, tell := &a.order, a.driver.config.Tell
	if o.Plan == nil || o.Spec.Pipeline.Model == "" || tell == nil || len(o.Workers) == 0 {
		return nil
	}
	told, why := tell(o.Spec, o.Workers[0].Kind, int32(len(o.Workers)), string(o.Plan.JSON))
	if why != "" {
		return &mistake{fmt.Errorf("the plan %s of its model cannot be told: %s", o.Plan.Schedule, why)}
	}
	whole := *o.Plan // the order's is not ours
	whole.JSON = told
	o.Plan = &whole
	return nil
}

// prepare waits until every worker only has to be told go, and tells them. It
// returns an event instead when the gang ended before all of it had begun. How long that
// may take is the supervisors' to say, which see what their workers do meanwhile.
func (a *attempt) prepare() (engine.Event, bool) {
	for {
		a.read()
		if a.allStarted() {
			return engine.Event{}, true // found again, running or ended
		}
		stopping, _ := a.wants()
		ended := a.anyEnded()
		ready := a.all(func(s *seen) bool { return s.prepared || s.started > 0 })
		switch {
		case a.anyStarted() && ended:
			a.abort() // it fell apart while it was being told to go
			return a.ending(), false
		case ended || stopping && !a.anyStarted():
			a.abort()
			return a.unstarted(stopping && !ended), false
		case ready:
			a.release()
			return engine.Event{}, true
		}
		a.sleep()
	}
}

// release tells all workers to go. One that has gone already is not told again.
func (a *attempt) release() {
	for i, dir := range a.dirs {
		if a.seen[i].started > 0 {
			continue
		}
		if err := supervise.Send(dir, supervise.Go); err != nil && !errors.Is(err, supervise.ErrNotListening) {
			a.driver.config.Log.Warn("telling a worker to go", "attempt", a.String(), "rank", i, "error", err)
		}
	}
}

// unstarted is the event of a gang that ended before all of it had begun.
func (a *attempt) unstarted(stopped bool) engine.Event {
	if stopped {
		return a.event(engine.Stopped, plan.NoFailure, 0)
	}
	switch rank, class := a.cause(); class {
	case plan.NoFailure:
		return a.broke(engine.NotStarted, plan.Hindered, "the other workers were not ready in time")
	case plan.UserFailure:
		return a.failed(engine.Exited, class, rank)
	default:
		if a.seen[rank].ended.Class != supervise.Node {
			return a.failed(engine.NotStarted, plan.Hindered, rank) // killed, or kept from it by what passes
		}
		return a.failed(engine.NotStarted, plan.StartFailure, rank)
	}
}

// follow reports the gang's start, progress and end.
func (a *attempt) follow() engine.Event {
	reported, halted, released := false, false, false
	// Of a run that is found again while it is being put to rest, or woken, nobody knows
	// how far that came: it is told once more, and reported.
	resting := a.order.Status == plan.Suspended && a.order.Change == 0 || a.order.Status == plan.Resuming
	for {
		a.read()
		if !reported && a.allStarted() {
			reported = true
			a.driver.report(a.unmeasured(engine.Started))
		}
		if a.anyEnded() && !a.allEnded() {
			if a.anyFailed() && !halted {
				halted = true
				// The others cannot go on without it. What they hold may be all of the last step.
				a.tell(supervise.Halt)
				a.tell(supervise.Leave)
			}
		}
		if a.allEnded() {
			return a.ending()
		}
		stopping, asleep := a.wants()
		if stopping && !halted {
			halted = true
			a.tell(supervise.Halt)
		}
		if stopping && !released && !a.all(func(s *seen) bool { return !s.kept && s.ended == nil }) {
			released = true
			a.tell(supervise.Leave) // one worker speaks for all, and none goes on without another
		}
		if reported {
			a.tellGrants()
		}
		if reported && !stopping && asleep != resting {
			resting = a.rest(asleep)
		}
		a.sleep()
	}
}

// rest suspends or resumes all workers, and reports it when all have.
func (a *attempt) rest(asleep bool) bool {
	order, kind := supervise.Resume, engine.Resumed
	if asleep {
		order, kind = supervise.Suspend, engine.Suspended
	}
	a.tell(order)
	for !a.anyEnded() {
		a.read()
		all := true
		for i := range a.seen {
			all = all && a.seen[i].suspended == asleep
		}
		if all {
			a.driver.report(a.event(kind, plan.NoFailure, 0))
			break
		}
		a.sleep()
	}
	return asleep
}

// tell gives one order to every worker that has not ended.
func (a *attempt) tell(o supervise.Order) {
	for i := range a.dirs {
		if a.seen[i].ended == nil {
			a.send(i, o)
		}
	}
}

// send gives one order to one worker, and again to whoever takes the worker over.
func (a *attempt) send(rank int, o supervise.Order) {
	s := &a.seen[rank]
	s.told = append(slices.DeleteFunc(s.told, o.Replaces), o)
	a.deliver(rank, o)
}

func (a *attempt) deliver(rank int, o supervise.Order) {
	if err := supervise.Send(a.dirs[rank], o); err != nil && !errors.Is(err, supervise.ErrNotListening) {
		a.driver.config.Log.Warn("ordering a worker", "attempt", a.String(), "rank", rank, "order", o, "error", err)
	}
}

// abort ends what there is of a gang that shall not run, and waits until all of it
// has ended. A supervisor that is only coming up hears nothing yet, so it is told
// until it has.
func (a *attempt) abort() {
	for i, dir := range a.dirs {
		if _, err := os.Stat(filepath.Join(dir, "spec.json")); err != nil {
			a.seen[i].ended = &supervise.Record{Kind: supervise.Ended, Class: supervise.Aborted} // was never launched
		}
	}
	for {
		a.read()
		switch {
		case a.allEnded():
			return
		case a.anyStarted():
			a.tell(supervise.Kill)
		default:
			a.tell(supervise.Abort)
		}
		a.sleep()
	}
}

func (a *attempt) sleep() {
	select {
	case <-a.changed:
	case <-time.After(poll):
	}
}
