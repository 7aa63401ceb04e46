package engine

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// apply makes one event part of the state.
func (e *Engine) apply(ev *Event) {
	switch ev.Kind {
	case Submit:
		e.submit(ev)
	case Cancel, Hold, Release, Requeue:
		e.request(ev)
	case Cordon, Uncordon, Drain, NodeDown, NodeUp:
		e.node(ev)
	case DeviceDown, DeviceUp:
		e.device(ev)
	case Pause, Unpause:
		e.state.Paused = ev.Kind == Pause
		e.why.Wake = true
	case Rebuilt:
		e.rebuild()
	case Switched:
		e.switched()
	case Truth:
		if e.valid(ev.Job) {
			e.state.Jobs[ev.Job].Oracle = ev.Span
			e.touch(ev.Job)
		}
	case Close, Reopen:
		e.window(ev)
	case Shares:
		e.shares(ev)
	case Arranged:
		e.arrange(ev)
	case Assembled:
		e.assembled(ev)
	case Joined, Occupied, Confined:
		e.around(ev)
	case Answered:
		e.why.Answers = append(e.why.Answers, ev.Answer)
	case Reshaped:
		if ev.Device < 0 || int(ev.Device) >= len(e.state.Devices) {
			return
		}
		if d := &e.state.Devices[ev.Device]; d.Change == ev.Change && d.Status == plan.Reshaping {
			e.state.SetDevice(ev.Device, plan.Steady)
			e.why.Room = true
			e.confirm(ev.Change)
		}
	case Started, NotStarted, Stopped, Exited, Suspended, Resumed, Observed:
		if run := e.state.RunOf(ev.Job, ev.Attempt); run != plan.None {
			e.report(ev, run)
		}
	}
}

func (e *Engine) valid(id plan.JobID) bool { return id >= 0 && int(id) < len(e.state.Jobs) }

// report applies what a driver says about a live run.
func (e *Engine) report(ev *Event, run plan.RunID) {
	r := &e.state.Runs[run]
	switch {
	case ev.Kind == Started && r.Status == plan.Starting:
		e.sick.clearSick(e.state, &e.policy, run, &e.why)
		e.state.Jobs[ev.Job].Unstarted = 0
		e.state.Began(run)
		e.state.Doubt(run, ev.RateOff)
		e.touch(ev.Job)
	case ev.Kind == NotStarted && r.Status == plan.Starting && ev.Class == plan.Hindered:
		e.endRun(run, ev, plan.Hindered)
	case ev.Kind == NotStarted && r.Status == plan.Starting:
		e.sick.markSick(e.state, &e.policy, run)
		e.endRun(run, ev, plan.StartFailure)
	case ev.Kind == NotStarted && r.Status == plan.Stopping:
		e.endRun(run, ev, plan.NoFailure) // it was told to stop before it could start
	case ev.Kind == Stopped && r.Status == plan.Stopping:
		noteSaved(e.state, ev, run)
		e.endRun(run, ev, plan.NoFailure)
	case ev.Kind == Exited:
		e.endRun(run, ev, ev.Class)
	case ev.Kind == Suspended && r.Status == plan.Suspended, ev.Kind == Resumed && r.Status == plan.Resuming:
		change := r.Change
		if ev.Kind == Resumed {
			e.state.Began(run)
		} else {
			e.state.Rested(run)
		}
		e.touch(ev.Job)
		e.confirm(change)
	case ev.Kind == Observed:
		if ev.RateMicro > 0 || ev.RateOff != (plan.Off{}) {
			e.state.Doubt(run, ev.RateOff)
		}
		if ev.RateMicro > 0 || ev.Stood > 0 || ev.Loss > 0 || len(ev.Stages) > 0 || len(ev.Slow) > 0 {
			e.observe(ev, run)
		}
		if ev.Goes != nil {
			e.state.GoesBy(run, ev.Goes.Plan)
		}
		if ev.Progress > 0 { // a report that does not say it changes nothing
			e.state.ObserveProgress(ev.Job, ev.Progress)
		}
		r.Saved = max(r.Saved, ev.Saved)
	}
}

// observe takes in at which rate a run goes and what it has reached, for those who
// learn from it.
func (e *Engine) observe(ev *Event, run plan.RunID) {
	if ev.RateMicro > 0 || ev.Stood > 0 {
		e.state.Observe(run, ev.RateMicro, ev.Stood)
	}
	if ev.Loss > 0 {
		e.state.ObserveLoss(ev.Job, ev.Loss, ev.Progress)
	}
	e.why.Observed = append(e.why.Observed, schedule.Observation{Job: ev.Job, RateMicro: ev.RateMicro, Busy: ev.Busy, Stood: ev.Stood, Loss: ev.Loss, Progress: ev.Progress, Stages: ev.Stages, Slow: ev.Slow, Links: ev.Links})
}

// endRun ends a run, whatever it was doing, and settles what becomes of its job.
func (e *Engine) endRun(run plan.RunID, ev *Event, class plan.FailureClass) {
	r := e.state.Runs[run]
	stopping := r.Status == plan.Stopping
	if class == plan.NodeFailure {
		e.broke(run, ev.Kept, ev.Alive)
	}
	e.state.EndRun(run, ev.Kept)
	e.why.Room = true
	switch {
	case !stopping:
		e.finishOrRetry(r.Job, class)
	case ev.Kind == Exited && class == plan.NoFailure:
		e.finishedAnyway(r.Job)
	}
	if j := &e.state.Jobs[r.Job]; stopping && j.Phase == plan.Finished && j.Reason.Code == plan.Shed {
		j.Ended = e.state.Now
		e.ended(r.Job)
	}
	// Otherwise the job was put back in the queue, or ended, when the stop was decided.
	e.state.Ended.Add(e.state, &r, ev.Kept)
	e.touch(r.Job)
	e.confirm(r.Change)
}

// broke tells the scheduler of a run with a plan that lost a device: it may know a way to go on.
func (e *Engine) broke(run plan.RunID, kept unit.Duration, alive bool) {
	r := &e.state.Runs[run]
	if r.Terms.Plan.ID == plan.None || r.Began == unit.Never || r.Status == plan.Stopping {
		return
	}
	redo := max(0, e.state.Now.Sub(r.Began)-r.Paused-kept)
	b := schedule.Broken{Job: r.Job, Plan: r.Terms.Plan.ID, Workers: r.Workers, Redo: redo}
	first := plan.NodeID(plan.None)
	e.View().GrantsOf(run, func(g plan.Grant) {
		if first == plan.None {
			first, b.Model = g.Node, e.state.Nodes[g.Node].Model
		}
		b.Several = b.Several || g.Node != first
		if alive && g.Device != plan.None {
			b.Alive = append(b.Alive, g.Device)
		}
	})
	e.why.Broken = append(e.why.Broken, b)
}

// finishedAnyway ends a job that did its work before it could be stopped.
func (e *Engine) finishedAnyway(id plan.JobID) {
	j := &e.state.Jobs[id]
	if j.Phase.Over() {
		return
	}
	if j.Run != plan.None { // a promise it no longer needs
		e.state.EndRun(j.Run, 0)
	}
	e.finish(id)
}

// finishOrRetry moves a job whose run ended by itself to where it goes next.
func (e *Engine) finishOrRetry(id plan.JobID, class plan.FailureClass) {
	s, j := e.state, &e.state.Jobs[id]
	switch class {
	case plan.NoFailure:
		e.finish(id)
	case plan.TimeFailure:
		s.SetPhase(id, plan.Failed, plan.Reason{Code: plan.OverLimit})
		e.ended(id)
	case plan.Hindered:
		// Not the job's doing, and nothing that gets worse; but what was in the way may be
		// in the way for a moment more.
		j.Restarts++
		j.NotBefore = s.Now.Add(e.policy.BackOff)
		s.SetPhase(id, plan.Backoff, plan.Reason{Code: plan.BackingOff, A: int64(j.NotBefore), B: int64(class)})
		e.backoff.add(j.NotBefore, id)
	case plan.NodeFailure:
		// Not the job's doing: it waits for room, no longer.
		j.Restarts++
		s.SetPhase(id, plan.Waiting, plan.Reason{Code: plan.RunFailed, A: int64(class)})
	case plan.StartFailure:
		j.Restarts++
		if known := e.sick.known; known > 0 {
			// It tried a node that was known to be sick. Next time another goes first: it may be the one that starts.
			e.sick.known = 0
			j.NotBefore = known.Add(e.policy.BackOff)
			s.SetPhase(id, plan.Backoff, plan.Reason{Code: plan.BackingOff, A: int64(j.NotBefore), B: int64(class)})
			e.backoff.add(j.NotBefore, id)
			return
		}
		// One that cannot be started anywhere would make node after node look sick.
		if j.Unstarted++; j.Unstarted >= e.policy.CrashLoop {
			s.SetPhase(id, plan.Held, plan.Reason{Code: plan.CrashLoop, A: int64(j.Unstarted)})
			return
		}
		e.backOff(id, class)
	default:
		j.Failures++
		if j.Failures > j.Retries {
			s.SetPhase(id, plan.Failed, plan.Reason{Code: plan.RunFailed, A: int64(class)})
			e.ended(id)
			return
		}
		j.Restarts++
		if j.Failures >= e.policy.CrashLoop {
			s.SetPhase(id, plan.Held, plan.Reason{Code: plan.CrashLoop, A: int64(j.Failures)})
			return
		}
		e.backOff(id, class)
	}
}

func (e *Engine) finish(id plan.JobID) {
	e.state.SetPhase(id, plan.Finished, plan.Reason{Code: plan.DidFinish})
	e.ended(id)
}

// backOff lets a job wait, twice as long after each failure.
func (e *Engine) backOff(id plan.JobID, class plan.FailureClass) {
	j := &e.state.Jobs[id]
	wait := e.policy.BackOff
	for i := int32(1); i < j.Restarts && wait < e.policy.BackOffMost; i++ {
		wait *= 2
	}
	j.NotBefore = e.state.Now.Add(min(wait, e.policy.BackOffMost))
	e.state.SetPhase(id, plan.Backoff, plan.Reason{Code: plan.BackingOff, A: int64(j.NotBefore), B: int64(class)})
	e.backoff.add(j.NotBefore, id)
}

func (e *Engine) endBackoffs() {
	for {
		id, ok := e.backoff.popDue(e.state.Now)
		if !ok {
			return
		}
		if j := &e.state.Jobs[id]; j.Phase == plan.Backoff && j.NotBefore <= e.state.Now {
			e.state.SetPhase(id, plan.Waiting, plan.Reason{Code: plan.New})
			e.touch(id)
		}
	}
}
