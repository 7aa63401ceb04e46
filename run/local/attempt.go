package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
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

	mu       sync.Mutex
	stopping bool
	asleep   bool          // should be
	granted  *run.Order    // what the workers should be held to, where they have to be told; nil is none
	changed  chan struct{} // receives when one of the above changes
}

// seen is what the records of a worker have told so far.
type seen struct {
	next      int64 // position to read on from
	prepared  bool
	started   unit.Time
	saved     unit.Time // last checkpoint reported
	suspended bool
	ended     *supervise.Record
}

// poll is how often records are looked at; prepareWithin how long a gang may take
// to get ready.
const (
	poll          = 50 * time.Millisecond
	prepareWithin = time.Minute
)

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
		if errors.As(err, new(*mistake)) {
			return a.event(engine.Exited, plan.UserFailure, 0) // no reason to think that this machine is sick
		}
		return a.event(engine.NotStarted, plan.StartFailure, 0)
	}
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
		if err := supervise.Launch(spec, a.driver.config.Exe); err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return nil
}

// prepare waits until every worker only has to be told go, and tells them. It
// returns an event instead when the gang ended before all of it had begun.
func (a *attempt) prepare() (engine.Event, bool) {
	deadline := time.Now().Add(prepareWithin)
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
		case ended || stopping && !a.anyStarted() || !ready && time.Now().After(deadline):
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
	for i := range a.seen {
		if e := a.seen[i].ended; e != nil && e.Class == supervise.User {
			a.driver.config.Log.Warn("a job's command cannot be run", "attempt", a.String(), "why", e.Why)
			return a.event(engine.Exited, plan.UserFailure, 0)
		}
	}
	return a.event(engine.NotStarted, plan.StartFailure, 0)
}

// follow reports the gang's start, progress and end.
func (a *attempt) follow() engine.Event {
	reported, halted := false, false
	// Of a run that is found again while it is being put to rest, or woken, nobody knows
	// how far that came: it is told once more, and reported.
	resting := a.order.Status == plan.Suspended && a.order.Change == 0 || a.order.Status == plan.Resuming
	for {
		a.read()
		if !reported && a.allStarted() {
			reported = true
			a.driver.report(a.event(engine.Started, plan.NoFailure, 0))
		}
		if a.anyEnded() && !a.allEnded() {
			if a.failed() && !halted {
				halted = true
				a.tell(supervise.Kill) // the others cannot go on without it
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

// send gives one order to one worker.
func (a *attempt) send(rank int, o supervise.Order) {
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

// read takes in what is new in the records, and settles workers whose supervisor
// died.
func (a *attempt) read() {
	for i := range a.seen {
		if a.seen[i].ended != nil {
			continue
		}
		records, _, err := supervise.ReadRecords(a.dirs[i], a.seen[i].next)
		if err != nil {
			a.driver.config.Log.Error("reading a worker's record", "attempt", a.String(), "rank", i, "error", err)
			a.seen[i].ended = &supervise.Record{Kind: supervise.Ended, Class: supervise.Node, Why: err.Error()}
			continue
		}
		for r := range records {
			a.note(i, &records[r])
		}
		if a.seen[i].ended == nil && len(records) == 0 {
			a.reap(i)
		}
	}
}

// reap records the end of a worker whose supervisor is gone.
func (a *attempt) reap(rank int) {
	if alive, err := supervise.Alive(a.dirs[rank]); err != nil || alive {
		return
	}
	// It may be about to begin: a supervisor locks its directory first of all.
	if !a.seen[rank].prepared && a.seen[rank].started == 0 && young(a.dirs[rank]) {
		return
	}
	if r, err := supervise.Reap(a.dirs[rank]); err == nil {
		a.seen[rank].ended = &r
	}
}

// young reports whether a member directory was made so recently that its
// supervisor may not have come up yet.
func young(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "spec.json"))
	return err == nil && time.Since(info.ModTime()) < 10*time.Second
}

// note takes in one record.
func (a *attempt) note(rank int, r *supervise.Record) {
	s := &a.seen[rank]
	s.next = r.Next
	switch r.Kind {
	case supervise.Prepared:
		s.prepared = true
	case supervise.Started:
		s.started = r.At
	case supervise.Suspended, supervise.Resumed:
		s.suspended = r.Kind == supervise.Suspended
		a.pace.again()
	case supervise.Checkpoint:
		s.saved = r.At
		a.observe(rank, r)
	case supervise.Progress:
		a.observe(rank, r)
	case supervise.Ended:
		a.observe(rank, r)
		s.ended = r
	}
}

// observe reports what rank 0 says of the job. A checkpoint tells its step and not of how
// many.
func (a *attempt) observe(rank int, r *supervise.Record) {
	if rank != 0 || r.Report.Step == 0 {
		return
	}
	e := a.event(engine.Observed, plan.NoFailure, 0)
	e.Loss = r.Report.Loss
	if a.of = max(a.of, r.Report.Of); a.of > 0 {
		e.Progress = int32(min(1_000_000, r.Report.Step*1_000_000/a.of))
	}
	if r.Kind == supervise.Progress {
		e.RateMicro, e.Stood = a.rate(r)
	}
	e.Saved = a.kept()
	a.driver.report(e)
}

// ending is the event of a gang that has ended: stopped as told, done, or failed
// with the class of the worker that failed for a reason of its own.
func (a *attempt) ending() engine.Event {
	stopping, _ := a.wants()
	kept := a.kept()
	done, class := true, plan.NoFailure
	for i := range a.seen {
		e := a.seen[i].ended
		done = done && e.Class == supervise.Done
		if c := classOf(e); worse(c, class) {
			class = c
		}
	}
	switch {
	case done:
		return a.event(engine.Exited, plan.NoFailure, a.ran())
	case stopping:
		return a.event(engine.Stopped, plan.NoFailure, kept)
	case class == plan.NoFailure: // stopped by an order of a plane that crashed
		return a.event(engine.Exited, plan.NodeFailure, kept)
	}
	return a.event(engine.Exited, class, kept)
}

// classOf maps why a worker ended to whose failure it was.
func classOf(e *supervise.Record) plan.FailureClass {
	switch e.Class {
	case supervise.User:
		return plan.UserFailure
	case supervise.Memory:
		return plan.MemoryFailure
	case supervise.TimeLimit:
		return plan.TimeFailure
	case supervise.Node, supervise.Lost, supervise.Temporary:
		return plan.NodeFailure
	}
	return plan.NoFailure
}

// worse orders failures by how surely they tell the cause: a worker that lost its
// peers only says that another one failed, and one that was killed because another
// failed says nothing.
func worse(a, b plan.FailureClass) bool {
	rank := map[plan.FailureClass]int{plan.NoFailure: 0, plan.NodeFailure: 1, plan.UserFailure: 2, plan.TimeFailure: 3, plan.MemoryFailure: 4}
	return rank[a] > rank[b]
}

// ran is the running time of the gang so far; kept the part of it that its last
// checkpoint covers.
func (a *attempt) ran() unit.Duration {
	last := unit.Time(0)
	for i := range a.seen {
		if e := a.seen[i].ended; e != nil {
			last = max(last, e.At)
		}
	}
	if s := a.seen[0].started; s > 0 && last > s {
		return last.Sub(s)
	}
	return 0
}

func (a *attempt) kept() unit.Duration {
	if s := &a.seen[0]; s.started > 0 && s.saved > s.started {
		return s.saved.Sub(s.started)
	}
	return 0
}

func (a *attempt) event(kind engine.Kind, class plan.FailureClass, kept unit.Duration) engine.Event {
	return engine.Event{Kind: kind, Job: a.order.Job, Attempt: a.order.Attempt, Ending: engine.Ending{Class: class, Kept: kept}}
}

func (a *attempt) sleep() {
	select {
	case <-a.changed:
	case <-time.After(poll):
	}
}

func (a *attempt) all(f func(*seen) bool) bool {
	for i := range a.seen {
		if !f(&a.seen[i]) {
			return false
		}
	}
	return true
}

func (a *attempt) allStarted() bool { return a.all(func(s *seen) bool { return s.started > 0 }) }
func (a *attempt) allEnded() bool   { return a.all(func(s *seen) bool { return s.ended != nil }) }
func (a *attempt) anyEnded() bool   { return !a.all(func(s *seen) bool { return s.ended == nil }) }
func (a *attempt) anyStarted() bool { return !a.all(func(s *seen) bool { return s.started == 0 }) }

// failed reports whether a worker ended other than by being done.
func (a *attempt) failed() bool {
	return !a.all(func(s *seen) bool { return s.ended == nil || s.ended.Class == supervise.Done })
}
