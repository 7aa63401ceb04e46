package engine_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// arranged is a world of two nodes of two devices: job 1 is on one of node 0, job 2 on
// one of node 1, and job 3, which wants a node, waits.
func arranged(t *testing.T) *world {
	w := newWorld(t, 2, 2, engine.DefaultPolicy())
	w.step(0, submit("first", 1), submit("a", 1), submit("b", 1))
	w.sched.first = func(d *plan.Draft) { // other settings than those of a new run
		terms := plan.DefaultTerms()
		terms.Traffic.Weight = 7
		d.Regrant(d.Job(2).Run, terms, plan.Reason{Code: plan.Answered})
	}
	w.step(1, report(engine.Started, 0, 1), report(engine.Started, 1, 1), report(engine.Started, 2, 1))
	w.step(2, engine.Event{Kind: engine.Exited, Job: 0, Attempt: 1})
	wide := submit("big", 1)
	wide.Spec.Devices = 2
	w.sched.first = nil
	w.step(3, wide)
	w.phase(3, plan.Waiting)
	return w
}

func moves() engine.Event {
	return engine.Event{Kind: engine.Arranged, Job: 3, Moves: []engine.Move{
		{Job: 3, Attempt: 1, Places: []engine.Place{{Node: 1, Workers: 1, On: []plan.DeviceID{2, 3}}}, Pipeline: &plan.Pipeline{Schedule: "gpipe"}},
		{Job: 2, Attempt: 2, Places: []engine.Place{{Node: 0, Workers: 1, On: []plan.DeviceID{0}}}, Price: unit.Minute},
	}}
}

// TestArranged: the runs are stopped and promised again in one commit, with their
// settings, the scheduler is told, and all of them go on when the stop is confirmed.
func TestArranged(t *testing.T) {
	for _, paused := range []string{"deciding", "paused"} {
		t.Run(paused, func(t *testing.T) {
			w := arranged(t)
			if paused == "paused" {
				w.step(3, engine.Event{Kind: engine.Pause})
			}
			out := w.step(4, moves())
			if out.Commit == nil || verbs(out.Commit.Changes) != "stop start start" || verbs(out.Ready) != "stop" || out.Commit.Changes[0].Price != unit.Minute {
				t.Fatalf("the commit is %+v, ready %+v", out.Commit, out.Ready)
			}
			for _, id := range []plan.JobID{2, 3} {
				if paused != "paused" && !slices.Contains(w.sched.why.Jobs, id) {
					t.Errorf("the scheduler is told of %v", w.sched.why.Jobs)
				}
			}
			v := w.View()
			b, big := v.Job(2), v.Job(3)
			if b.Preemptions != 1 || big.Preemptions != 0 || b.Reason != (plan.Reason{Code: plan.Defragmented, A: 3}) || b.Attempt != 2 {
				t.Errorf("the moved job is %+v", b)
			}
			if v.Run(b.Run).Terms.Traffic.Weight != 7 || v.Pipeline(v.Run(big.Run).Terms.Plan.ID).Schedule != "gpipe" {
				t.Errorf("terms %+v and %+v", v.Run(b.Run).Terms, v.Run(big.Run).Terms)
			}
			want := moves()
			for _, m := range want.Moves {
				if at := engine.PlacesOf(v, v.Job(m.Job).Run); !reflect.DeepEqual(at, m.Places) {
					t.Errorf("job %d is on %v", m.Job, at)
				}
			}
			if out = w.step(5, report(engine.Stopped, 2, 1)); verbs(out.Ready) != "start start" {
				t.Errorf("when it has stopped, ready are %s", verbs(out.Ready))
			}
		})
	}
}

// TestArrangedOrNot: what does not fit the state is refused, and does nothing at all if
// it comes all the same, because something else came before it.
func TestArrangedOrNot(t *testing.T) {
	for name, change := range map[string]func(ev *engine.Event, w *world){
		"nothing":           func(ev *engine.Event, _ *world) { ev.Moves = nil },
		"no such job":       func(ev *engine.Event, _ *world) { ev.Moves[1].Job = 99 },
		"another attempt":   func(ev *engine.Event, _ *world) { ev.Moves[1].Attempt = 3 },
		"the gang's too":    func(ev *engine.Event, _ *world) { ev.Moves[0].Attempt = 2 },
		"twice":             func(ev *engine.Event, _ *world) { ev.Moves = append(ev.Moves, ev.Moves[1]) },
		"does not run":      func(_ *engine.Event, w *world) { w.step(4, engine.Event{Kind: engine.Hold, Job: 2}) },
		"the gang is held":  func(_ *engine.Event, w *world) { w.step(4, engine.Event{Kind: engine.Hold, Job: 3}) },
		"a taken device":    func(ev *engine.Event, _ *world) { ev.Moves[1].Places[0].On[0] = 1 },
		"no such device":    func(ev *engine.Event, _ *world) { ev.Moves[1].Places[0].On[0] = 100 },
		"no such node":      func(ev *engine.Event, _ *world) { ev.Moves[1].Places[0].Node = -5 },
		"too many workers":  func(ev *engine.Event, _ *world) { ev.Moves[0].Places[0].Workers = 9 },
		"the node is taken": func(_ *engine.Event, w *world) { w.step(4, engine.Event{Kind: engine.Cordon, Node: 0}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := arranged(t)
			ev := moves()
			change(&ev, w)
			before := w.View().Job(1)
			if w.Accept(&ev) == nil {
				t.Error("it is accepted")
			}
			if err := w.State().Check(); err != nil {
				t.Fatal(err)
			}
			next := w.State().NextChange
			w.State().Paused = true // or the scheduler would decide something
			out := w.Step(w.now+1, []engine.Event{ev})
			if out.Commit != nil || w.State().NextChange != next || w.View().Job(1) != before {
				t.Errorf("it did %+v", out.Commit)
			}
			if err := w.State().Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
