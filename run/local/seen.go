package local

import (
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/supervise"
)

// seen is what the records of a worker have told so far.
type seen struct {
	coming    <-chan struct{} // its supervisor was started here: closed when that is no more; nil where none was
	next      int64           // position to read on from
	prepared  bool
	started   unit.Time
	saved     unit.Time // last checkpoint reported
	asked     bool      // to stop; a checkpoint after that is what the job leaves behind
	kept      bool      // it reported that one
	suspended bool
	ended     *supervise.Record
	told      []supervise.Order // the last of each sort
}

// unsaved reports whether a worker that has ended was asked to save, was not lost, and told of no checkpoint
// after that.
func (s *seen) unsaved() bool {
	return s.started > 0 && s.asked && !s.kept && (s.ended.Class == supervise.Done || s.ended.Class == supervise.Preempted)
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
	if s := &a.seen[rank]; s.coming != nil && !s.prepared && s.started == 0 {
		select {
		case <-s.coming:
		default:
			return
		}
	}
	if r, err := supervise.Reap(a.dirs[rank]); err == nil {
		a.seen[rank].ended = &r
	}
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
		a.plan.devices.again()
	case supervise.StopRequested:
		s.asked = true
	case supervise.TakenOver:
		a.driver.config.Log.Warn("the supervisor of a worker was killed, its keeper goes on", "attempt", a.String(), "rank", rank)
		for _, o := range s.told {
			a.deliver(rank, o)
		}
	case supervise.Checkpoint:
		s.saved, s.kept = r.At, s.asked
		a.observe(rank, r)
	case supervise.Planned:
		a.answered(r)
	case supervise.Progress:
		a.observe(rank, r)
		a.watchPlan(rank, r)
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
		used := a.pace.uses(r)
		if e.RateMicro, e.RateOff, e.Stood = a.rate(r); e.RateMicro > 0 && !a.order.Guest { // a guest uses what it is left
			e.Busy = a.driver.config.busy(used, len(a.order.Workers[rank].Devices), r)
		}
	}
	e.Saved = a.kept()
	a.driver.report(e)
}

// ending is the event of a gang that has ended: stopped as told, done, or failed
// with the class of the worker that failed for a reason of its own.
func (a *attempt) ending() engine.Event {
	stopping, _ := a.wants()
	rank, class := a.cause()
	switch {
	case a.all(func(s *seen) bool { return s.ended.Class == supervise.Done }):
		return a.event(engine.Exited, plan.NoFailure, a.ran())
	case stopping:
		e := a.event(engine.Stopped, plan.NoFailure, a.kept())
		e.Unsaved = a.order.Spec.Checkpoint.OnRequest && a.all((*seen).unsaved)
		return e
	case class == plan.NoFailure: // stopped by an order of a plane that crashed
		return a.event(engine.Exited, plan.NodeFailure, a.kept())
	}
	return a.failed(engine.Exited, class, rank)
}

// cause finds the worker whose failure tells most of why the gang failed, the first to end
// among equals; NoFailure is none.
func (a *attempt) cause() (rank int, class plan.FailureClass) {
	for i := range a.seen {
		e := a.seen[i].ended
		if e == nil {
			continue
		}
		if c := classOf(e); worse(c, class) || c == class && c != plan.NoFailure && e.At < a.seen[rank].ended.At {
			rank, class = i, c
		}
	}
	return rank, class
}

// failed is an event of a gang that failed by what became of one worker.
func (a *attempt) failed(kind engine.Kind, class plan.FailureClass, rank int) engine.Event {
	r, e := a.seen[rank].ended, a.event(kind, class, a.kept())
	e.Failure = &plan.Failure{Rank: int32(rank), Node: a.order.Workers[rank].Node, Code: r.Code, Signal: r.Signal, Why: r.Why}
	if class == plan.MemoryFailure {
		e.Failure.Limit, e.Failure.Peak = r.Limit, r.Usage.Peak
	}
	return e
}

// broke is an event of a gang that failed before any worker could be the cause.
func (a *attempt) broke(kind engine.Kind, class plan.FailureClass, why string) engine.Event {
	e := a.event(kind, class, 0)
	e.Failure = &plan.Failure{Rank: -1, Node: a.order.Workers[0].Node, Why: why}
	return e
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

// Any worker may have told of it: who is lost tells nothing, and what the others save then is of
// no later than that.
func (a *attempt) kept() unit.Duration {
	saved, lost := unit.Time(0), unit.Never
	for i := range a.seen {
		saved = max(saved, a.seen[i].saved)
		if e := a.seen[i].ended; e != nil && e.Class != supervise.Done && e.Class != supervise.Preempted {
			lost = min(lost, e.At)
		}
	}
	if s := &a.seen[0]; s.started > 0 && min(saved, lost) > s.started {
		return min(saved, lost).Sub(s.started)
	}
	return 0
}

func (a *attempt) event(kind engine.Kind, class plan.FailureClass, kept unit.Duration) engine.Event {
	return engine.Event{Kind: kind, Job: a.order.Job, Attempt: a.order.Attempt, Ending: engine.Ending{Class: class, Kept: kept}}
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

// anyFailed reports whether a worker ended other than by being done.
func (a *attempt) anyFailed() bool {
	return !a.all(func(s *seen) bool { return s.ended == nil || s.ended.Class == supervise.Done })
}
