package trainer

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/run/trainer/progress"
)

func TestAllDivisionsLearnTheSame(t *testing.T) {
	args := flags(tiny())
	alone := attempt(t, 1, args, nil).must(t, ExitDone).losses()
	if len(alone) != tiny().Steps || alone[20] > 0.8*alone[1] {
		t.Fatalf("the loss did not fall in %d steps: %v", tiny().Steps, alone)
	}
	for _, d := range divisions() {
		t.Run(d.name, func(t *testing.T) {
			first := attempt(t, d.workers, args, d.env(t, "")).must(t, ExitDone).losses()
			for step, loss := range alone {
				if !closeTo(first[step], loss, 1e-3, 0) {
					t.Errorf("step %d: loss %g, of one worker %g", step, first[step], loss)
				}
			}
			again := attempt(t, d.workers, args, d.env(t, "")).must(t, ExitDone).losses()
			if !maps.Equal(first, again) {
				t.Errorf("a rerun differs:\n%v\n%v", first, again)
			}
		})
	}
}

func TestFirstGradientsAreTheSame(t *testing.T) {
	c := tiny()
	alone := newWorker(c, corpus, nil, newMesh(place{world: 1}))
	if _, err := alone.step(1, false, false); err != nil {
		t.Fatal(err)
	}
	for _, d := range divisions() {
		t.Run(d.name, func(t *testing.T) {
			all := meshesFor(t, d, defaultPatience)
			grads := make([][]float32, 1)
			if d.plan != nil {
				grads = make([][]float32, d.plan.Stages)
			}
			together(t, d.workers, func(rank int) error {
				w := newWorker(c, corpus, d.plan, all[rank])
				_, err := w.step(1, false, false)
				for i, s := range w.stages {
					var whole []float32
					for l := range s.layers {
						g, gathered := s.gather(s.g, l)
						whole, err = append(whole, g...), errors.Join(err, gathered)
					}
					if all[rank].tensor.rank == 0 && all[rank].data.rank == all[rank].data.world-1 { // all have the same
						grads[w.held[i]] = whole
					}
				}
				all[rank].leave()
				return err
			})
			got := slices.Concat(grads...)
			if len(got) != len(alone.stages[0].g) {
				t.Fatalf("%d gradients, want %d", len(got), len(alone.stages[0].g))
			}
			for i, want := range alone.stages[0].g {
				if !closeTo(float64(got[i]), float64(want), 1e-4, 1e-7) {
					t.Fatalf("gradient %d is %g, of one worker %g", i, got[i], want)
				}
			}
		})
	}
}

func TestResumeRepeatsEveryBit(t *testing.T) {
	whole, half := tiny(), tiny()
	half.Steps = 9
	for _, d := range divisions() {
		t.Run(d.name, func(t *testing.T) {
			want := attempt(t, d.workers, flags(whole), d.env(t, "")).must(t, ExitDone).losses()
			env := d.env(t, t.TempDir())
			attempt(t, d.workers, flags(half), env).must(t, ExitDone)
			rest := attempt(t, d.workers, flags(whole), env).must(t, ExitDone)
			got := rest.losses()
			for step := int64(10); step <= 20; step++ {
				if got[step] != want[step] {
					t.Errorf("step %d: loss %v after a resume, %v without", step, got[step], want[step])
				}
			}
			if len(got) != 11 {
				t.Errorf("%d steps after the resume, want 11", len(got))
			}
			attempt(t, d.workers, flags(whole), env).must(t, ExitDone) // nothing is left to do
		})
	}
}

// A job goes through all divisions in turn, a few steps each.
func TestResizeBetweenAttempts(t *testing.T) {
	c := tiny()
	want := attempt(t, 1, flags(c), nil).must(t, ExitDone).losses()
	dir := t.TempDir()
	all := divisions()
	for i := range 10 {
		c.Steps = 2 * (i + 1)
		d := all[(i*3+10)%len(all)]
		got := attempt(t, d.workers, flags(c), d.env(t, dir)).must(t, ExitDone).losses()
		for step := int64(2*i + 1); step <= int64(2*i+2); step++ {
			if !closeTo(got[step], want[step], 1e-3, 0) {
				t.Errorf("%s: step %d: loss %g, of one worker %g", d.name, step, got[step], want[step])
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != checkpointsKept {
		t.Errorf("%d checkpoints are left (%v), want %d", len(entries), err, checkpointsKept)
	}
}

func TestRequestsInTheControlFile(t *testing.T) {
	for _, d := range divisions() {
		t.Run(d.name, func(t *testing.T) {
			control := filepath.Join(t.TempDir(), "control")
			// The file is there before the job: it asks at the first boundary.
			for _, c := range []progress.Command{{Verb: progress.Save}, {Verb: progress.Resize, Workers: 2}} {
				if err := progress.Send(control, c); err != nil {
					t.Fatal(err)
				}
			}
			env := d.env(t, t.TempDir())
			env["MUSTER_CONTROL"] = control
			r := attempt(t, d.workers, flags(tiny()), env).must(t, ExitStopped)
			if !slices.Equal(r.saved(), []int64{1}) {
				t.Errorf("saved at %v, want at 1", r.saved())
			}
		})
	}
}

// TestBatch: a batch asked for in the control file is that of all workers from the next
// step on, one that does not feed them all is not taken; one in the environment is that of
// the attempt.
func TestBatch(t *testing.T) {
	samples := func(r result) int64 { return r.events[len(r.events)-2].Samples } // the last says that it is done
	for _, d := range divisions() {
		t.Run(d.name, func(t *testing.T) {
			control := filepath.Join(t.TempDir(), "control")
			for _, n := range []int{12, batchLimit + 1} {
				env := d.env(t, t.TempDir())
				delete(env, "MUSTER_CHECKPOINT_DIR")
				env["MUSTER_CONTROL"] = control
				if err := progress.Send(control, progress.Command{Verb: progress.Batch, Batch: n}); err != nil {
					t.Fatal(err)
				}
				r := attempt(t, d.workers, flags(tiny()), env).must(t, ExitDone)
				if want := int64(6 + 19*12); n == 12 && samples(r) != want || n > 12 && samples(r) != 20*6 {
					t.Errorf("asked for %d: %d samples in 20 steps, %d of them of 12", n, samples(r), want)
				}
			}
			env := d.env(t, t.TempDir())
			env["MUSTER_BATCH"] = "12"
			twelve := tiny()
			twelve.Batch = 12
			got, want := attempt(t, d.workers, flags(tiny()), env).must(t, ExitDone), attempt(t, 1, flags(twelve), nil).must(t, ExitDone).losses()
			for step, loss := range got.losses() {
				if !closeTo(loss, want[step], 1e-3, 0) {
					t.Errorf("step %d: loss %g, of one worker told by a flag %g", step, loss, want[step])
				}
			}
		})
	}
}

func TestProgressTellsTheStory(t *testing.T) {
	c := tiny()
	c.Steps, c.CheckpointEvery = 4, 2
	dir := t.TempDir()
	r := attempt(t, 2, flags(c), map[string]string{"MUSTER_CHECKPOINT_DIR": dir}).must(t, ExitDone)
	var story []string
	sent := int64(0)
	for _, e := range r.events {
		if e.Kind == progress.Step {
			if e.Sent < sent {
				t.Errorf("by step %d it has sent %d bytes, fewer than the %d by the step before", e.Step, e.Sent, sent)
			}
			sent = e.Sent
		}
		e.Loss, e.HasLoss, e.Rate, e.Sent = 0, false, 0, 0
		story = append(story, strings.ReplaceAll(e.String(), dir, "DIR"))
	}
	if sent == 0 {
		t.Error("two workers exchanged gradients and nothing was sent")
	}
	want := []string{
		"phase name=rendezvous", "phase name=train",
		"step=1 of=4 samples=6", "step=2 of=4 samples=12", "checkpoint step=2 path=DIR/step-00000002",
		"step=3 of=4 samples=18", "step=4 of=4 samples=24", "checkpoint step=4 path=DIR/step-00000004",
		"phase name=done",
	}
	if !slices.Equal(story, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(story, "\n"), strings.Join(want, "\n"))
	}
}

func TestUnfitJobsAreRefused(t *testing.T) {
	long := filepath.Join(t.TempDir(), "short.txt")
	if err := os.WriteFile(long, []byte("too short"), 0o644); err != nil {
		t.Fatal(err)
	}
	plan := writePlan(t, gpipe(2, 2))
	for _, c := range []struct {
		args string
		env  map[string]string
		says string
	}{
		{"--steps 0", nil, "steps is 0: expected 1 to 10000000"},
		{"--dim 10 --heads 4", nil, "dim 10 is not a multiple of heads 4"},
		{"--lr nan", nil, "lr is NaN"},
		{"--step-delay -1s", nil, "step-delay"},
		{"--no-such-flag", nil, "no-such-flag"},
		{"extra", nil, `unexpected argument "extra"`},
		{"--text /does/not/exist", nil, "no such file"},
		{"--text " + long, nil, "text has 9 bytes: a sequence of 32 needs at least 33"},
		{"", map[string]string{"WORLD_SIZE": "two"}, `WORLD_SIZE="two"`},
		{"", map[string]string{"WORLD_SIZE": "2", "RANK": "2"}, `RANK="2": expected 0 to 1`},
		{"", map[string]string{"WORLD_SIZE": "2", "RANK": "0"}, "need a host and a port"},
		{"--batch 2", map[string]string{"WORLD_SIZE": "3", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}, "too small, expected at least 3"},
		{"", map[string]string{"MUSTER_PLAN": plan}, "the plan is for 2 workers"},
		{"", map[string]string{"MUSTER_PLAN": plan, "WORLD_SIZE": "3", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}, "or a multiple of them that share the batch"},
		{"--batch 3", map[string]string{"MUSTER_PLAN": plan, "WORLD_SIZE": "4", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}, "expected at least 4"},
		{"", map[string]string{"MUSTER_PLAN": writePlan(t, sliced(gpipe(1), 3))}, "tensor is 3: expected a divisor of 4"},
		{"--batch 1", map[string]string{"MUSTER_PLAN": plan}, "microbatches is 2: expected 1 to 1"},
		{"", map[string]string{"MUSTER_PLAN": long}, "not a plan"},
		{"", map[string]string{"MUSTER_PROGRESS": "fd:x"}, "expected a path or fd:N"},
	} {
		var log strings.Builder
		code := Main(strings.Fields(c.args), func(key string) string { return c.env[key] }, &log)
		if code != ExitUsage || !strings.Contains(log.String(), c.says) {
			t.Errorf("%q %v: code %d, want %d and %q:\n%s", c.args, c.env, code, ExitUsage, c.says, log.String())
		}
	}
}
