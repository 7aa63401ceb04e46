package view

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Once a run was given another plan, the plan, show and why say what else there was to do and for
// what price; of a job whose run never had to they say nothing.
func TestReacted(t *testing.T) {
	h := newHistory(t, "srtf+declared+dp-cut+1f1b")
	j := workload.Job{Name: "drifting", Estimate: unit.Hour, Resources: workload.Resources{Gang: 2, Devices: 1}}
	j.Pipeline = workload.Pipeline{Stages: 2, Microbatches: 8, Layers: slices.Repeat([]workload.Layer{{Forward: 10 * unit.Millisecond, Backward: 20 * unit.Millisecond}}, 8)}
	h.step(submit(j))
	h.step(engine.Event{Kind: engine.Started, Job: 0, Attempt: 1})
	if p := PlanOf(h.e.View(), h.info[0], 0); p.Reacted != nil || h.job(0).Reaction != nil {
		t.Errorf("before anything drifted: %+v", p.Reacted)
	}
	h.step(engine.Event{Kind: engine.Observed, Job: 0, Attempt: 1, Observation: engine.Observation{Timed: engine.Timed{Stages: []unit.Duration{240 * unit.Millisecond, 120 * unit.Millisecond}}}})
	text, err := json.Marshal(PlanOf(h.e.View(), h.info[0], 0))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cause, Chosen string
		Cuts          []int32
		Reactions     []struct {
			Way   string
			Price float64 `json:"price_device_s"`
			Why   string
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Cause != "drift" || got.Chosen != "re-cut" || got.Cuts[0] != 3 || len(got.Reactions) != 8 || got.Reactions[0].Way != "re-cut" || got.Reactions[7].Why == "" {
		t.Errorf("%v: the plan says %s", err, text)
	}
	var b bytes.Buffer
	shown := h.job(0)
	if err := WriteJob(&b, &shown, TextOptions{}); err != nil || !strings.Contains(b.String(), "re-cut was chosen") || !strings.Contains(b.String(), "ride through: ") || !strings.Contains(b.String(), "restart: no, because ") {
		t.Errorf("%v: show says\n%s", err, b.String())
	}
}
