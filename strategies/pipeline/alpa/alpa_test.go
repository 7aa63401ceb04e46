package alpa

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
)

// form is what the form says of a cut if each stage runs in the fastest way that fits, counted
// layer by layer; Forever where one does not.
func form(x *parallel.Simulator, s *parallel.Shape, cuts []int32) unit.Duration {
	var together, slowest unit.Duration
	first := int32(0)
	for stage, end := range append(slices.Clone(cuts), int32(x.Model.Profile.Layers())) {
		fastest := unit.Forever
		for way := range int8(3) {
			one := parallel.Slice{First: int(first), End: int(end), Ways: slices.Repeat([]int8{way}, x.Model.Profile.Layers())}
			costs, _, _ := x.Stage(&parallel.Rank{Tensor: 1, Replicas: 1, Devices: []int32{int32(stage)}}, one, 1, 1)
			if costs.ParamKiB+costs.StateKiB+int64(s.Ranks-stage)*costs.ActivationKiB <= int64(x.On.Kinds[0].Memory)<<10 {
				fastest = min(fastest, costs.Forward+costs.Input+costs.Weight)
			}
		}
		if fastest == unit.Forever {
			return fastest
		}
		together, slowest, first = together+fastest, max(slowest, fastest), end
	}
	return together + unit.Duration(s.Microbatches-1)*slowest
}

// TestEqualsBruteForce: the form is least of all cuts, and never more where there is more memory.
// Plans fit, and refusals are right.
func TestEqualsBruteForce(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 100
	}
	refused := 0
	paralleltest.DrawTight(1, cases, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
		best := unit.Forever
		paralleltest.Cuts(8, 4, func(cuts []int32) { best = min(best, form(x, &s, cuts)) })
		shape, cost, why := cut(x, &s, false)
		if cost != best || (why == "") != (best < unit.Forever) {
			t.Fatalf("the form says %d (%s), least of all is %d", cost, why, best)
		}
		if why != "" {
			refused++
			return
		}
		if paralleltest.Step(x, &shape) == unit.Forever {
			t.Errorf("%v does not fit", shape.Cuts)
		}
		on := parallel.Even(x.On.Kinds[0], 4, 1, 0)
		on.Kinds[0].Memory += 100
		if _, more, _ := cut(parallel.NewSimulator(x.Model, on), &s, false); more > cost {
			t.Errorf("the form says %d, and %d with more memory", cost, more)
		}
	})
	if refused == 0 || refused == cases {
		t.Errorf("%d of %d cases do not fit: expected some", refused, cases)
	}
}

// TestBounds: the form is no less than a step under 1F1B, and no more than one under GPipe.
func TestBounds(t *testing.T) {
	r := Measure(1)
	if r["alternate_most"] > 1 || r["alternate_least"] > 0.99 || r["all_least"] < 1 || r["all_most"] < 1.01 {
		t.Errorf("steps over the form: %v", r)
	}
}

// TestFolded: where a rank holds several stages the form says nothing.
func TestFolded(t *testing.T) {
	paralleltest.Draw(1, 1, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
		s.Cuts = make([]int32, 7)
		if _, _, why := cut(x, &s, false); why == "" {
			t.Error("eight stages on four ranks are cut")
		}
	})
}
