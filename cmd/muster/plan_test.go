package main

import (
	"encoding/json"
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
