package reproduce_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/musterdl/muster/reproduce"
	"github.com/musterdl/muster/world/pollux"
)

// TestPolluxArtefact: in the artefact's own world its two baselines come out within
// .1 % of what it published for workload 6, and Pollux, where chance decides, within 7 %.
func TestPolluxArtefact(t *testing.T) {
	const archive = "../../shared/data/pollux-sia/pollux_workloads.tar.gz"
	if _, err := os.Stat(archive); err != nil {
		t.Skip("no ../shared/data/pollux-sia: the Pollux workloads are not in the repository")
	}
	for strategy, published := range map[string]float64{"tiresias": 3469.69375, "optimus": 5301.875, "pollux-greedy": 2446.13125} {
		s := reproduce.Defaults()
		s.Trace, s.Cluster, s.Strategy, s.World = "pollux:"+archive+"#workloads/workload-6.csv", "gpus:16x4", strategy, reproduce.PolluxArtefact
		o, err := reproduce.Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		limit := .001
		if strategy == "pollux-greedy" {
			limit = .07
		}
		if r := o.Result; math.Abs(r.AvgJCTSec/published-1) > limit || r.Finished != 160 || !r.Balanced {
			t.Errorf("%s: average JCT %.3f s, published %.3f; %d finished, balanced %v", strategy, r.AvgJCTSec, published, r.Finished, r.Balanced)
		}
		s.World = ""
		if strategy != "tiresias" {
			continue // elastic, and the trace declares no menus
		}
		if o, err = reproduce.Simulate(s); err != nil || o.Result.Finished != 160 || !o.Result.Balanced {
			t.Errorf("%s, event-driven: %+v, %v", strategy, o, err)
		}
	}
}

// TestPlotPollux: a drawing is SVG that names its curves. The data is made up: playing
// a sweep takes minutes.
func TestPlotPollux(t *testing.T) {
	sweep := pollux.Sweep{Name: "load", X: "load", Curves: []pollux.Curve{
		{Policy: "greedy", Points: []pollux.Point{{X: .5, Seconds: 1560, Published: 1534}, {X: 1, Seconds: 2760, Published: 2751}}},
		{Policy: "tiresias", Points: []pollux.Point{{X: .5, Seconds: 2090, Published: 2091}, {X: 1, Seconds: 4038, Published: 4038}}},
	}}
	var b bytes.Buffer
	if err := reproduce.PlotPollux(&b, sweep); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", ">greedy<", ">tiresias<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the drawing lacks %s", want)
		}
	}
}
