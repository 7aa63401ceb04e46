package main

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/trainer"
)

// plan is what the API tells of a job's pipeline.
func (p *controlPlane) plan(name string) (out view.Plan) {
	p.t.Helper()
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.socket())
	}}}
	resp, err := c.Get("http://muster/v1/jobs/" + name + "/plan")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s, %v", name, resp.Status, err)
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
				Command: slices.Concat(keepProgress, []string{exe, "trainer", "--steps", "40", "--checkpoint-every", "0", "--step-delay", "20ms"})}}
		if stages > 0 {
			j.Pipeline = workload.Pipeline{Stages: stages, Microbatches: 4, Tensor: tensor,
				Layers: trainer.Profile(trainer.Default(), trainer.Speed{Microbatches: 4, GFLOPS: 4})}
		}
		return j
	}
	if _, err := p.client.Submit(t.Context(), []workload.Job{job("alone", 1, 0, 0)}, "alone"); err != nil {
		t.Fatal(err)
	}
	p.muster("wait", "alone")
	want := p.losses("alone", 1)
	for name, j := range map[string]workload.Job{"pipelines": job("pipelines", 4, 2, 0), "slices": job("slices", 4, 2, 2)} {
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
		p.muster("wait", name)
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
