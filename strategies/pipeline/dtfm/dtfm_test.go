package dtfm

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/run/simulated/scheduletest"
)

func TestConform(t *testing.T) {
	scheduletest.ConformPart(t, parallel.PlannerPart, func() any { return New(Default()) })
}

// TestScenarios: in the five scenarios the search beats the median of random assignments.
func TestScenarios(t *testing.T) {
	for name, ratio := range Measure(1) {
		t.Log(name, ratio)
		if !strings.HasSuffix(name, "simulated") && ratio >= 1 {
			t.Errorf("%s: %g of the median of random assignments", name, ratio)
		}
	}
}

// TestPlans: of peers at two sites that are far apart those of a site share a stage where the
// weights are large, and a pipeline where the activations are.
func TestPlans(t *testing.T) {
	far := parallel.Link{Bandwidth: 100, Latency: 50_000}
	on := &parallel.Devices{Kinds: []parallel.Device{{Name: "unit", TFlops: 1}}, Sites: [][]parallel.Link{{{}, far}, {far, {}}}}
	for i := range 4 {
		on.Nodes = append(on.Nodes, parallel.Node{Count: 1, Site: int32(i % 2), Out: 10_000})
	}
	on.Index()
	for _, weights := range []bool{true, false} {
		layer := parallel.Layer{Forward: 1000, Input: 1000, Weight: 1000, ParamKiB: 1, ActivationKiB: 1, OutputKiB: 1 << 14, GFlop: 1}
		if weights {
			layer.ParamKiB, layer.OutputKiB = 1<<20, 1
		}
		m := &parallel.Model{Profile: paralleltest.Chain{layer, layer, layer, layer}, Batch: 8, State: parallel.MixedAdam}
		all, why := New(Default()).Plans(parallel.NewSimulator(m, on), parallel.Limits{Ranks: 2, Sequences: []parallel.Sequence{paralleltest.OneFOneB}})
		if why != "" {
			t.Fatal(why)
		}
		at := func(pipeline, rank int) int32 { return all[0].Plan.Pipelines[pipeline].Ranks[rank].Devices[0] % 2 }
		if weights && (at(0, 0) != at(1, 0) || at(0, 1) != at(1, 1)) || !weights && (at(0, 0) != at(0, 1) || at(1, 0) != at(1, 1)) {
			t.Errorf("large weights %v: the stages stand at sites %d %d and %d %d", weights, at(0, 0), at(0, 1), at(1, 0), at(1, 1))
		}
	}
}
