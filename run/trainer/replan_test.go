package trainer

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/run/trainer/progress"
	"github.com/musterdl/muster/strategies/pipeline/interleaved"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

// deep is a tiny job of eight layers with the embedding and the head.
func deep() Config {
	c := tiny()
	c.Layers = 6
	return c
}

// answers are what the trainer said of plans that it was asked to go by.
func (r result) answers() (all []progress.Event) {
	for _, e := range r.events {
		if e.Kind == progress.Planned {
			all = append(all, e)
		}
	}
	return all
}

// ask has a job that starts find a request for a plan in its control file.
func ask(t *testing.T, env map[string]string, path string) {
	t.Helper()
	env["MUSTER_CONTROL"] = filepath.Join(t.TempDir(), "control")
	if err := progress.Send(env["MUSTER_CONTROL"], progress.Command{Verb: progress.Plan, Path: path}); err != nil {
		t.Fatal(err)
	}
}

// TestReplan: a job that goes on by another plan in the same processes has to the bit the losses
// of one that is stopped and resumed by the other plan: nothing of a layer stays behind.
func TestReplan(t *testing.T) {
	c := deep()
	alone := attempt(t, 1, flags(c), nil).must(t, ExitDone).losses()
	round := interleaved.New(interleaved.Default())
	for _, d := range []struct {
		name    string
		workers int
		a, b    *pipeline.Plan
	}{
		{"2 stages, the cut moves", 2, oneForwardOneBackward(3, 2), oneForwardOneBackward(6, 6)},
		{"2 stages, 1f1b to halves", 2, oneForwardOneBackward(3, 4), planned(zerobubble.H1{}, 2, 6, 3)},
		{"2 workers, round and round", 2, oneForwardOneBackward(3, 4), planned(round, 2, 6, 1, 2, 5)},
		{"2 workers, there and back", 2, planned(round, 2, 6, 2, 4, 6), planned(zbv.V{}, 2, 6, 1, 5, 6)},
		{"4 stages, layers go over two others", 4, oneForwardOneBackward(6, 5, 6, 7), oneForwardOneBackward(4, 1, 2, 3)},
		{"4 stages, round and round", 4, oneForwardOneBackward(6, 2, 4, 6), planned(round, 4, 4, 1, 2, 3, 4, 5, 6, 7)},
		{"2 pipelines of 2 stages", 4, oneForwardOneBackward(3, 2), oneForwardOneBackward(2, 5)},
		{"2 stages of 2 slices", 4, sliced(oneForwardOneBackward(3, 2), 2), sliced(planned(zerobubble.H1{}, 2, 3, 5), 2)},
	} {
		t.Run(d.name, func(t *testing.T) {
			first, dir := c, t.TempDir()
			first.Steps = 1
			attempt(t, d.workers, flags(first), map[string]string{"MUSTER_CHECKPOINT_DIR": dir, "MUSTER_PLAN": writePlan(t, d.a)}).must(t, ExitDone)
			want := attempt(t, d.workers, flags(c), map[string]string{"MUSTER_CHECKPOINT_DIR": dir, "MUSTER_PLAN": writePlan(t, d.b)}).must(t, ExitDone).losses()
			saved := t.TempDir()
			env := map[string]string{"MUSTER_PLAN": writePlan(t, d.a), "MUSTER_CHECKPOINT_DIR": saved, "MUSTER_TIMINGS": filepath.Join(t.TempDir(), "timings")}
			ask(t, env, writePlan(t, d.b))
			r := attempt(t, d.workers, flags(c), env).must(t, ExitDone)
			if said := r.answers(); len(said) != 1 || said[0] != (progress.Event{Kind: progress.Planned, Step: 1, File: "plan.json"}) {
				t.Errorf("of the plan it says %+v", said)
			}
			got := r.losses()
			for step, loss := range want {
				if got[step] != loss || !closeTo(got[step], alone[step], 1e-3, 0) {
					t.Errorf("step %d: loss %v, resumed by the plan %v, of one worker %v", step, got[step], loss, alone[step])
				}
			}
			if len(want) != c.Steps-1 {
				t.Errorf("%d steps after the first one", len(want))
			}
			timings, err := progress.ReadTimings(env["MUSTER_TIMINGS"])
			if err != nil || len(timings.Timeline) != len(d.b.Orders) || len(timings.Timeline[0]) != len(d.b.Orders[0]) {
				t.Errorf("timings %+v, %v", timings, err)
			}
			// What it saves at the end is whole, and of the division that it has.
			if divisions, err := (checkpoints{dir: saved}).divisions(c.Steps); err != nil || !slices.Equal(divisions, []int{int(d.b.Stages)}) {
				t.Errorf("saved as %v stages, %v", divisions, err)
			}
		})
	}
}

// TestReplanIsRefused: a plan that does not fit is refused with a reason, and the run goes on by
// the old one as if nobody had asked.
func TestReplanIsRefused(t *testing.T) {
	two, four := oneForwardOneBackward(3, 2), oneForwardOneBackward(3, 2, 4, 6)
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, says string
		workers          int
		plan             *pipeline.Plan
	}{
		{"more workers", writePlan(t, four), "for 4 workers in a row with each layer on 1: expected 2 and 1", 2, two},
		{"slices", writePlan(t, sliced(oneForwardOneBackward(3, 2), 2)), "for 2 workers in a row with each layer on 2: expected 2 and 1", 4, two},
		{"layers that there are not", writePlan(t, oneForwardOneBackward(3, 9)), "cut 0 is at layer 9", 2, two},
		{"microbatches without a sequence", writePlan(t, oneForwardOneBackward(4, 2)), "a batch of 6 sequences is too small for it: expected at least 8", 4, two},
		{"no plan", broken, "not a plan", 2, two},
		{"no file", filepath.Join(t.TempDir(), "none.json"), "no such file", 2, two},
		{"a job without a plan", writePlan(t, two), "expected an attempt that began with a plan", 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := division{"", c.workers, c.plan}.env(t, "")
			want := attempt(t, c.workers, flags(deep()), env).must(t, ExitDone).losses()
			ask(t, env, c.path)
			r := attempt(t, c.workers, flags(deep()), env).must(t, ExitDone)
			said := r.answers()
			if len(said) != 1 || said[0].File != filepath.Base(c.path) || !strings.Contains(said[0].Why, c.says) {
				t.Errorf("of the plan it says %+v, want %q", said, c.says)
			}
			if got := r.losses(); !maps.Equal(got, want) {
				t.Errorf("it goes on as\n%v, undisturbed\n%v", got, want)
			}
		})
	}
}

// TestReplanWhileItRuns: of real processes one is asked, now and again, and all go on by the plan,
// also through the loss of one of them behind it.
func TestReplanWhileItRuns(t *testing.T) {
	c := deep()
	c.Steps = 60
	want := attempt(t, 1, flags(c), nil).must(t, ExitDone).losses()
	dir := t.TempDir()
	env := map[string]string{"MUSTER_PLAN": writePlan(t, oneForwardOneBackward(3, 2)), "MUSTER_CHECKPOINT_DIR": dir}
	control := filepath.Join(t.TempDir(), "control")
	p := &processes{t: t, args: flags(c, "--step-delay", "10ms"), report: filepath.Join(t.TempDir(), "progress")}
	own := []string{"WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + freePort(t), "MUSTER_PLAN=" + env["MUSTER_PLAN"], "MUSTER_CHECKPOINT_DIR=" + dir}
	for rank := range 4 {
		if rank == 2 {
			own = append(own, "MUSTER_CONTROL="+control)
		}
		p.start(rank, own...)
		own = own[:5]
	}
	for _, cut := range []int32{5, 1, 4} {
		path := writePlan(t, oneForwardOneBackward(2, cut))
		p.until(reached(3))
		if err := progress.Send(control, progress.Command{Verb: progress.Plan, Path: path}); err != nil {
			t.Fatal(err)
		}
		answered := 0
		p.until(func(e progress.Event) bool {
			if e.Kind == progress.Planned {
				answered++
			}
			return e.Kind == progress.Planned && answered == map[int32]int{5: 1, 1: 2, 4: 3}[cut]
		})
	}
	p.signal(1, syscall.SIGKILL)
	r := p.wait()
	saved := r.saved()
	if len(saved) == 0 {
		t.Fatalf("nothing was saved when a worker was lost:\n%s", r.logs[0])
	}
	last := saved[len(saved)-1]
	got := r.losses()
	maps.Copy(got, spawn(t, 4, flags(c), env).wait().must(t, ExitDone).losses())
	for step, loss := range want {
		told, known := got[step]
		if !known && step == last {
			continue // the worker was lost after it had made the step and before all had told its loss
		}
		if !closeTo(told, loss, 1e-3, 0) {
			t.Errorf("step %d: loss %g, of one worker %g; saved at %d", step, told, loss, last)
		}
	}
}
