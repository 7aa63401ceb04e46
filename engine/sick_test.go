package engine_test

import (
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// TestTrial: a quarantined node is tried again by one start after a pause, which is twice as long after each that
// fails; the first that goes well opens it, in an engine that was restored in between too.
func TestTrial(t *testing.T) {
	policy := engine.Policy{BackOff: unit.Second, BackOffMost: 30 * unit.Second, CrashLoop: 50, SickNode: 3, SickPause: 10 * unit.Second}
	w := newWorld(t, 1, 4, policy)
	w.step(0, submit("a", 1), submit("b", 1), submit("c", 1))
	out := w.step(1, report(engine.NotStarted, 0, 1), report(engine.NotStarted, 1, 1), report(engine.NotStarted, 2, 1))
	if w.View().Node(0).Status != plan.Quarantined || len(out.Closed) != 1 {
		t.Fatalf("the node is %s after three failed starts, and %v are told", w.View().Node(0).Status, out.Closed)
	}
	now := 1
	for _, pause := range []int{10, 20, 40, 40} {
		w.step(now + pause - 1)
		if n := w.View().Node(0); n.Status != plan.Quarantined || n.Trial.On {
			t.Fatalf("%d s after it was closed the node is %s", pause-1, n.Status)
		}
		state, err := w.State().Clone()
		if err != nil {
			t.Fatal(err)
		}
		w.Engine = engine.Restore(state, w.sched, policy)
		w.step(now+pause-1, engine.Event{Kind: engine.Rebuilt})
		now += pause
		w.step(now)
		active, run := 0, plan.JobID(plan.None)
		for id := range plan.JobID(3) {
			if w.View().Job(id).Phase == plan.Active {
				active, run = active+1, id
			}
		}
		if n := w.View().Node(0); active != 1 || n.Status != plan.Quarantined || !n.Trial.On {
			t.Fatalf("%d jobs try the node, one should; it is %s", active, n.Status)
		}
		w.step(now, report(engine.NotStarted, run, w.View().Job(run).Attempt))
	}
	now += 40
	w.step(now)
	w.step(now, engine.Event{Kind: engine.Hold, Job: active(w)}) // a trial that is called off is none: another may try
	stopped := report(engine.Stopped, 0, w.View().Job(0).Attempt)
	for id := range plan.JobID(3) {
		if w.View().Job(id).Phase == plan.Held {
			stopped = report(engine.Stopped, id, w.View().Job(id).Attempt)
		}
	}
	w.step(now+1, stopped)
	run := active(w)
	if run == plan.None {
		t.Fatal("nobody tries the node after a trial that was called off")
	}
	out = w.step(now+2, report(engine.Started, run, w.View().Job(run).Attempt))
	if n := w.View().Node(0); n.Status != plan.Up || n.Trial != (plan.Trial{}) || len(out.Opened) != 1 {
		t.Errorf("after a start that went well the node is %s, %+v, and %v are told", n.Status, n.Trial, out.Opened)
	}
}

// active is the first job with a run.
func active(w *world) plan.JobID {
	for id := range plan.JobID(w.View().Jobs()) {
		if w.View().Job(id).Phase == plan.Active {
			return id
		}
	}
	return plan.None
}
