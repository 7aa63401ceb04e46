package plane

import (
	"bytes"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// TestDefrag: a plan that is carried out is durable with what it caused: a plane that is
// rebuilt at any point of it goes on, and the history is decided again as it was.
func TestDefrag(t *testing.T) {
	for _, strategy := range []string{"fifo", "srtf", "tiresias"} {
		t.Run(strategy, func(t *testing.T) {
			w := newBench(t, t.TempDir(), strategy)
			defer w.close()
			same := func() {
				t.Helper()
				if !bytes.Equal(state(t, w.plane), state(t, w.rebuilt())) {
					t.Fatal("the rebuilt state is another")
				}
			}
			for _, name := range []string{"a", "b", "c", "big"} {
				e := submission(name, 1)
				e.Spec.Checkpoint = workload.Checkpoint{OnRequest: true, Save: unit.Second, Load: unit.Second}
				e.Spec.Estimate = unit.Hour
				if name == "big" {
					e.Spec.Devices, e.Spec.Estimate = 2, 10*unit.Hour
				}
				if r := w.ask(e, ""); r.Err != nil {
					t.Fatal(r.Err)
				}
				w.settle()
				if name == "c" {
					w.exit(member{0, 1}, plan.NoFailure)
				}
			}
			big, _ := w.plane.Find("big")
			if w.phase(big) != plan.Waiting {
				t.Fatalf("big is %s", w.phase(big))
			}
			w.clock = w.clock.Add(unit.Minute)
			f, err := catalogue.Resolve(strategy)
			if err != nil {
				t.Fatal(err)
			}
			parts, err := f.Parts(catalogue.Env{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			p := defrag.Planner{Placer: parts.Placer, Budget: defrag.DefaultBudget()}
			found, ok := p.Plan(w.plane.engine.State().Copy(), big)
			if !ok || len(found.Moves) != 1 {
				t.Fatal(found.Why)
			}
			if r := w.ask(found.Event(), ""); r.Err != nil {
				t.Fatal(r.Err)
			}
			same()
			if r := w.ask(found.Event(), ""); r.Err == nil {
				t.Error("a plan is carried out twice")
			}
			w.start() // the starts still wait for the stop
			if !found.Applied(w.plane.engine.View()) || w.phase(big) != plan.Active {
				t.Fatalf("big is %s after the moves", w.phase(big))
			}
			w.settle()
			same()
			for _, m := range append(found.Event().Moves[:1:1], found.Moves[0].Move) {
				v := w.plane.engine.View()
				if r := v.Run(v.Job(m.Job).Run); r.Status != plan.Running || r.Attempt != m.Attempt {
					t.Errorf("%s is %s, attempt %d", v.Name(m.Job), r.Status, r.Attempt)
				}
			}
			if d := w.plane.Info(found.Moves[0].Job).Dossier; d[len(d)-1].Words != "moved to make room for big" {
				t.Errorf("its dossier ends with %+v", d[len(d)-1])
			}
			w.finishAll()
			w.verify()
		})
	}
}
