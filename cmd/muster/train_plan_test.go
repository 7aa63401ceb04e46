package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/trainer"
)

// plan is what the API tells of a job's pipeline.
func (p *controlPlane) plan(name string) view.Plan {
	p.t.Helper()
	out, err := p.client.Plan(p.t.Context(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// TestPlannedTraining: jobs whose workers are two pipelines of two stages, or one with each
// layer on two workers, learn what one worker does, and tell how long their passes took.
func TestPlannedTraining(t *testing.T) {
	t.Parallel()
	p := newPlane(t, "--strategy", "srtf+declared+zb-h1", "--slots", "4", "--slot-cpu", "500m", "--summary-every", "50ms", "--grace", "10s")
	p.start()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	job := func(name string, workers, stages, tensor int32) workload.Job {
		j := workload.Job{Name: name, Estimate: unit.Hour, Resources: workload.Resources{Gang: workers, Devices: 1, Share: unit.Whole},
			Program: workload.Program{Env: []string{"MUSTER_TEST_AS_MUSTER=1"},
				Command: slices.Concat(p.staying(name), keepProgress, []string{exe, "trainer", "--steps", "40", "--checkpoint-every", "0", "--step-delay", "100ms"})}}
		if stages > 0 {
			j.Pipeline = workload.Pipeline{Stages: stages, Microbatches: 4, Tensor: tensor,
				Layers: trainer.Profile(trainer.Default(), trainer.Speed{Microbatches: 4, GFLOPS: 4})}
		}
		return j
	}
	if _, err := p.client.Submit(t.Context(), []workload.Job{job("alone", 1, 0, 0)}, "alone"); err != nil {
		t.Fatal(err)
	}
	p.noMore("alone")
	want := p.losses("alone", 1)
	jobs := map[string]workload.Job{"pipelines": job("pipelines", 4, 2, 0), "slices": job("slices", 4, 2, 2)}
	if os.Getenv("MUSTER_LONG") != "1" {
		delete(jobs, "pipelines") // slices are in a pipeline too
	}
	for name, j := range jobs {
		if _, err := p.client.Submit(t.Context(), []workload.Job{j}, name); err != nil {
			t.Fatal(err)
		}
		p.until(name, "measured", func(view.Job) bool { return p.plan(name).Measured != nil })
		told := p.plan(name)
		if said := p.muster("show", name); !strings.Contains(said, "\nplan        equal-layers+zb-h1, a step takes ") || !strings.Contains(said, " as measured") {
			t.Errorf("%s: show says\n%s", name, said)
		}
		if told.Schedule != "equal-layers+zb-h1" || len(told.Predicted) != 2 || len(told.Measured.Timeline) != 2 {
			t.Errorf("%s: its plan is %+v", name, told)
		}
		for r, line := range told.Measured.Timeline {
			for i, span := range line {
				if span.Op != told.Predicted[r][i].Op {
					t.Errorf("%s: rank %d did %s, predicted was %s", name, r, span.Op, told.Predicted[r][i].Op)
				}
			}
		}
		names, err := filepath.Glob(filepath.Join(p.state, "jobs", name, "plan.1.*.json"))
		if err != nil || len(names) != 1 {
			t.Fatalf("%s: its plan is in %v, %v", name, names, err)
		}
		file, err := os.ReadFile(names[0])
		if sliced := strings.Contains(string(file), `"tensor":2`); err != nil || sliced != (name == "slices") {
			t.Errorf("%s: %v, its file is %s", name, err, file)
		}
		p.noMore(name)
		got := p.losses(name, 1)
		for step := range int64(40) {
			if diff := math.Abs(got[step+1] - want[step+1]); !(diff <= 1e-3*want[step+1]) || want[step+1] == 0 {
				t.Errorf("%s: step %d: loss %v, of one worker %v", name, step+1, got[step+1], want[step+1])
			}
		}
		if after := p.plan(name); after.Schedule != "" || after.Measured != nil {
			t.Errorf("%s has ended, and its plan is %+v", name, after)
		}
	}
	odd := job("odd", 3, 2, 0)
	if _, err := p.client.Submit(t.Context(), []workload.Job{odd}, "odd"); err == nil {
		t.Error("three workers are taken for pipelines of two")
	}
}

// TestModelTraining: jobs that name a model get a menu when they are submitted, and their workers train that
// model by the plan of their offer, two copies of two stages, or two stages of which each layer is on two
// workers, and learn what one worker does. What was predicted of their passes and what was measured are of
// the same passes.
func TestModelTraining(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("half a minute; set MUSTER_LONG=1")
	}
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	train := []string{exe, "trainer", "--steps", "30", "--checkpoint-every", "0"}
	job := func(name string, workers int32, command ...string) workload.Job {
		return workload.Job{Name: name, Estimate: unit.Hour, Resources: workload.Resources{Gang: workers, Devices: 1, Share: unit.Whole},
			Program: workload.Program{Env: []string{"MUSTER_TEST_AS_MUSTER=1"}, Command: slices.Concat(keepProgress, train, command)}}
	}
	want := map[int64]float64{}
	for _, c := range []struct {
		sizes, name string
		ranks       int
	}{{"{tensor: 2, ranks: 2}", "tp2 pp2 dp1 1f1b m16", 2}, {"", "", 0}, {"{tensor: 1, ranks: 2}", "tp1 pp2 dp2 1f1b m8", 2}} {
		file := filepath.Join(t.TempDir(), "plans.yaml")
		text := "order: srtf\nestimate: declared\n"
		if c.sizes != "" {
			text += "planner: fixed-3d\noptions:\n  fixed-3d: " + c.sizes + "\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := newPlane(t, "--strategy", file, "--slots", "4", "--slot-cpu", "500m", "--summary-every", "50ms", "--grace", "10s")
		p.start()
		if len(want) == 0 {
			if _, err := p.client.Submit(t.Context(), []workload.Job{job("alone", 1, "--layers", "4", "--batch", "16")}, "alone"); err != nil {
				t.Fatal(err)
			}
			p.muster("wait", "alone")
			want = p.losses("alone", 1)
		}
		// Of its owner's file the model is the same, under another name.
		model := "tiny"
		if c.sizes == "" {
			model = filepath.Join(t.TempDir(), "mine.yaml")
			if err := os.WriteFile(model, []byte("blocks: 4\nhidden: 64\nffn: 256\nheads: 4\nsequence: 32\nvocabulary: 256\npositions: 32\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		j := job("tiny", 4, "--step-delay", "400ms") // it is told of while it runs, however fast the machine is
		j.Pipeline = workload.Pipeline{Model: model, Batch: 16}
		jobs := filepath.Join(t.TempDir(), "jobs.yaml")
		if err := os.WriteFile(jobs, spec.FormatJob(j), 0o600); err != nil {
			t.Fatal(err)
		}
		p.muster("submit", jobs)
		p.until("tiny", "measured", func(view.Job) bool { return p.plan("tiny").Measured != nil })
		told := p.plan("tiny")
		if c.name != "" && told.Schedule != c.name || len(told.Menu) != 1 || told.Menu[0].Schedule != told.Schedule || !told.Menu[0].Chosen || told.PassesSec <= 0 || told.PassesSec > told.IterationSec {
			t.Errorf("%s: its plan is %s, a step %g s of which passes %g s, its menu %+v", c.name, told.Schedule, told.IterationSec, told.PassesSec, told.Menu)
		}
		if len(told.Predicted) == 0 || c.ranks > 0 && len(told.Predicted) != c.ranks {
			t.Errorf("%s: %d ranks are predicted", told.Schedule, len(told.Predicted))
		}
		for r, line := range told.Measured.Timeline {
			for i, span := range line {
				if span.Op != told.Predicted[r][i].Op {
					t.Errorf("%s: rank %d did %s, predicted was %s", told.Schedule, r, span.Op, told.Predicted[r][i].Op)
				}
			}
		}
		if said := p.muster("show", "tiny"); !strings.Contains(said, "\nplan        "+told.Schedule+", a step takes ") || !strings.Contains(said, " as measured") {
			t.Errorf("%s: show says\n%s", told.Schedule, said)
		}
		page := filepath.Join(t.TempDir(), "plan.html")
		drawn := p.muster("show", "tiny", "--html", page)
		if n := strings.Count(drawn, "\nrank "); n != 2*len(told.Predicted) || !strings.Contains(drawn, "\nas predicted, a column is ") || !strings.Contains(drawn, "\nas measured, a column is ") || !strings.Contains(drawn, "by which it runs\n") {
			t.Errorf("%s: its timelines have %d lines\n%s", told.Schedule, n, drawn)
		}
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), ">predicted 0<") || !strings.Contains(string(text), ">measured 0<") {
			t.Errorf("%s: %v, its page has no two timelines", told.Schedule, err)
		}
		p.muster("wait", "tiny")
		got := p.losses("tiny", 1)
		for step := range int64(30) {
			if diff := math.Abs(got[step+1] - want[step+1]); !(diff <= 1e-3*want[step+1]) || want[step+1] == 0 {
				t.Errorf("%s: step %d: loss %v, of one worker %v", told.Schedule, step+1, got[step+1], want[step+1])
			}
		}
		for _, wrong := range []struct{ model, says string }{{"gpt-3", "no plan"}, {"tinny", "there is no model"}} {
			j := job("wrong", 4)
			j.Pipeline = workload.Pipeline{Model: wrong.model, Batch: 16}
			if _, err := p.client.Submit(t.Context(), []workload.Job{j}, wrong.model); err == nil || !strings.Contains(err.Error(), wrong.says) {
				t.Errorf("%s: %v, want %q in it", wrong.model, err, wrong.says)
			}
		}
	}
}
