package plane

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// TestRestartAtEveryBatch: after every batch of a random history a plane that is built
// from the journal has the state of the one that wrote it, to the byte, and then takes
// over from it half of the time, sometimes with another strategy; strategies are also
// switched while it runs. No job is lost, no run forgotten, and deciding the whole
// history again finds no difference.
func TestRestartAtEveryBatch(t *testing.T) {
	steps := 15
	if os.Getenv("MUSTER_LONG") != "" {
		steps = 120
	}
	draws.Cases{Few: 40}.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "muster-plane-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		strategies := []string{"fifo", "srtf", "tiresias"}
		w := newBench(t, dir, rapid.SampledFrom(strategies).Draw(t, "strategy"))
		defer w.close()
		submitted := 0
		for range rapid.IntRange(1, steps).Draw(t, "steps") {
			w.clock = w.clock.Add(unit.Duration(rapid.IntRange(-20, 120).Draw(t, "seconds")) * unit.Second)
			batch := w.draw(t, &submitted)
			w.step(batch...)
			fresh := w.rebuilt()
			if !bytes.Equal(state(t, w.plane), state(t, fresh)) {
				t.Fatalf("batch %d: the rebuilt state is another", w.journal.Last())
			}
			sameInfo(t, w.plane, fresh)
			if a, b := w.plane.decide, fresh.decide; !bytes.Equal(a.current, b.current) || !slices.Equal(a.before, b.before) {
				t.Fatalf("rebuilt, %s decides after %q, not %s after %q", b.strategy.Name, b.before, a.strategy.Name, a.before)
			}
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0:
				w.plane.lastSnapshot()
			case 1, 2:
				w.start()
			case 3:
				w.strategy(rapid.SampledFrom(strategies).Draw(t, "strategy"))
				w.start()
			case 4:
				w.config.Strategy = catalogue.Composition{}
				w.start()
			}
		}
		if v := w.plane.engine.View(); v.Jobs() != submitted {
			t.Fatalf("%d jobs were acknowledged, %d are there", submitted, v.Jobs())
		}
		w.free()
		w.finishAll()
		w.verify()
	})
}

// free takes away what people keep jobs and nodes back with.
func (w *bench) free() {
	v := w.plane.engine.View()
	batch := []message{request(engine.Event{Kind: engine.Unpause}, "")}
	for id := range plan.NodeID(v.Nodes()) {
		batch = append(batch, request(engine.Event{Kind: engine.Uncordon, Node: id}, ""))
	}
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Held {
			batch = append(batch, request(engine.Event{Kind: engine.Release, Job: id}, ""))
		}
	}
	w.step(batch...)
}

// sameInfo compares what is kept beside the state.
func sameInfo(t failer, a, b *Plane) {
	t.Helper()
	if x, y := fmt.Sprintf("%+v", infos(a)), fmt.Sprintf("%+v", infos(b)); x != y {
		t.Fatalf("rebuilt, jobs are remembered otherwise:\n%s\n%s", x, y)
	}
}

func infos(p *Plane) (all []JobInfo) {
	for _, i := range p.jobs {
		i.Spec = nil // a pointer
		all = append(all, i)
	}
	return all
}

// draw makes a batch: requests of people and what happens in nature.
func (w *bench) draw(t *rapid.T, submitted *int) (batch []message) {
	v := w.plane.engine.View()
	for range rapid.IntRange(0, 3).Draw(t, "messages") {
		job := plan.JobID(rapid.IntRange(0, max(0, v.Jobs()-1)).Draw(t, "job"))
		node := plan.NodeID(rapid.IntRange(0, v.Nodes()-1).Draw(t, "node"))
		switch rapid.IntRange(0, 10).Draw(t, "what") {
		case 0, 1, 2:
			e := submission(fmt.Sprint("j", *submitted), int32(rapid.IntRange(1, 4).Draw(t, "gang")))
			e.Spec.Estimate = unit.Duration(rapid.IntRange(0, 500).Draw(t, "estimate")) * unit.Second
			e.Spec.Retries = int32(rapid.IntRange(0, 2).Draw(t, "retries"))
			if rapid.IntRange(0, 3).Draw(t, "part") == 0 {
				e.Spec.Share = 500
			}
			if *submitted > 0 && v.Jobs() > 0 && rapid.IntRange(0, 3).Draw(t, "after") == 0 {
				e.Spec.After = []string{v.Name(job)}
			}
			*submitted++
			batch = append(batch, request(e, fmt.Sprint("key", *submitted)))
		case 3:
			kind := rapid.SampledFrom([]engine.Kind{engine.Cancel, engine.Hold, engine.Release, engine.Requeue}).Draw(t, "kind")
			batch = append(batch, request(engine.Event{Kind: kind, Job: job}, ""))
		case 4:
			kind := rapid.SampledFrom([]engine.Kind{engine.Cordon, engine.Uncordon, engine.Drain, engine.Uncordon}).Draw(t, "kind")
			batch = append(batch, request(engine.Event{Kind: kind, Node: node}, ""))
		case 5:
			kind := rapid.SampledFrom([]engine.Kind{engine.Pause, engine.Unpause, engine.Unpause}).Draw(t, "kind")
			batch = append(batch, request(engine.Event{Kind: kind}, ""))
		case 6:
			to, err := catalogue.Resolve(rapid.SampledFrom([]string{"fifo", "srtf", "tiresias"}).Draw(t, "to"))
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, w.plane.switching(Switch{To: to, Undo: rapid.Bool().Draw(t, "undo")}, &Switched{}))
		case 7:
			batch = append(batch, message{query: func(plan.View) {}, reply: make(chan Reply, 1)})
		default:
			batch = w.happen(t, batch)
		}
	}
	return batch
}

// happen lets something happen to one of the runs.
func (w *bench) happen(t *rapid.T, batch []message) []message {
	members := w.nature.members()
	if len(members) == 0 {
		return batch
	}
	m := rapid.SampledFrom(members).Draw(t, "member")
	e := engine.Event{Kind: engine.Started, Job: m.job, Attempt: m.attempt}
	switch order := w.nature.alive[m]; {
	case order == plan.Stop:
		e.Kind = engine.Stopped
		delete(w.nature.alive, m)
	case rapid.Bool().Draw(t, "observed"):
		e.Kind, e.Progress, e.Loss = engine.Observed, int32(rapid.IntRange(0, 1_000_000).Draw(t, "progress")), 2.5
		e.Saved = unit.Duration(rapid.IntRange(0, 50).Draw(t, "saved")) * unit.Second
	case rapid.Bool().Draw(t, "ends"):
		e.Kind = engine.Exited
		e.Class = rapid.SampledFrom([]plan.FailureClass{plan.NoFailure, plan.NoFailure, plan.UserFailure, plan.NodeFailure}).Draw(t, "class")
		delete(w.nature.alive, m)
	}
	return append(batch, message{events: []engine.Event{e}})
}
