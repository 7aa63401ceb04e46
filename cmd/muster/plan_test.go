package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestPlanTrace: a plan's trace is JSON, and what its ranks do in it adds up to the passes of
// all microbatches; two that run at once are drawn once.
func TestPlanTrace(t *testing.T) {
	dir := t.TempDir()
	job, file := filepath.Join(dir, "job.yaml"), filepath.Join(dir, "trace.json")
	text := "name: gpt\nworkers: 2\ncommand: [train]\npipeline: {stages: 2, microbatches: 8, layers: [{forward: 5ms, backward: 10ms}, {forward: 5ms, backward: 10ms}, {forward: 5ms, backward: 10ms}, {forward: 5ms, backward: 10ms}]}\n"
	if err := os.WriteFile(job, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, sequence := range []string{"gpipe", "zb-h1", "zbv", "dualpipe"} {
		if _, err := muster(t, "plan", job, "--strategy", "equal-layers+"+sequence, "--export", "perfetto:"+file); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var trace struct {
			TraceEvents []struct {
				Ph       string
				Tid, Dur int64
			}
		}
		if err := json.Unmarshal(data, &trace); err != nil {
			t.Fatalf("%s: %v", sequence, err)
		}
		busy := map[int64]int64{}
		for _, e := range trace.TraceEvents {
			if e.Ph == "X" {
				busy[e.Tid] += e.Dur
			}
		}
		if len(busy) != 2 || busy[1] != 240_000 || busy[2] != 240_000 {
			t.Errorf("%s: the ranks are busy for %v us, want 240000 each", sequence, busy)
		}
	}
}

// TestPlanTraceOfModel: of a published model the trace's busy times are those of the table: what
// is left of the step up to the last pass is the bubble.
func TestPlanTraceOfModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	said, err := muster(t, "plan", "--model", "gpt-3", "--cluster", "a100:8x8", "--batch", "64", "--strategy", "ptd-p", "--json", "--export", "perfetto:"+file)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Plans []struct {
			Bubble float64 `json:"bubble_pct"`
		}
		Memory []struct{ Rank int }
	}
	data, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal([]byte(said), &c)); err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Ph           string
			Tid, Ts, Dur int64
		}
	}
	if err := json.Unmarshal(data, &trace); err != nil {
		t.Fatal(err)
	}
	busy, end := 0.0, int64(0)
	for _, e := range trace.TraceEvents {
		if e.Ph == "X" {
			busy, end = busy+float64(e.Dur), max(end, e.Ts+e.Dur)
		}
	}
	if got := 100 * (1 - busy/float64(end)/float64(len(c.Memory))); math.Abs(got-c.Plans[0].Bubble) > 0.01 { // the other copies have other links
		t.Errorf("a bubble of %g %% in the trace, %g in the table", got, c.Plans[0].Bubble)
	}
}
