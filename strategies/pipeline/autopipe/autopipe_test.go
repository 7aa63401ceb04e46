package autopipe

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
)

// TestNearBruteForce: of a thousand chains of 8 layers on 4 devices all but one are within 2 % of
// the best of all cuts, that one within 3 %, and none is slower than what the search began with.
func TestNearBruteForce(t *testing.T) {
	cases, beyond := 1000, 0
	if testing.Short() {
		cases = 100
	}
	paralleltest.Draw(1, cases, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
		chain, why := x.Chain(&s)
		found, not := improve(x, &s)
		if why+not != "" {
			t.Fatal(why + not)
		}
		step, least := found[0].Result.Step, paralleltest.Least(x, s)
		if step > least+least/50 {
			beyond++
		}
		if step < least || step > least+3*least/100 || beyond > 1 {
			t.Errorf("cut %v of %v takes %d, the best of all %d", found[0].Plan.Pipelines[0].Cuts, x.Model.Profile, step, least)
		}
		if s.Cuts = seed(chain, &s); step > paralleltest.Step(x, &s) {
			t.Errorf("%v is slower than the seed %v", found[0].Plan.Pipelines[0].Cuts, s.Cuts)
		}
	})
}

// TestSeedFits: where the cut of equal times does not fit, the search begins with one that does.
func TestSeedFits(t *testing.T) {
	chain := slices.Repeat(paralleltest.Chain{{Forward: 100, Input: 100, Weight: 100, ActivationKiB: 1 << 10}}, 8)
	m := &parallel.Model{Profile: chain, Batch: 16}
	on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1, Memory: 6}, 2, 1, 0)
	l := parallel.Limits{Stages: true, Sequences: []parallel.Sequence{paralleltest.OneFOneB}}
	all, why := Planner{}.Plans(parallel.NewSimulator(m, on), l) // the first stage keeps two microbatches
	if why != "" || !slices.Equal(all[0].Plan.Pipelines[0].Cuts, []int32{3}) {
		t.Errorf("%v, %s: expected a cut before layer 3", all, why)
	}
	on.Kinds[0].Memory = 5
	if all, why = (Planner{}).Plans(parallel.NewSimulator(m, on), l); why == "" {
		t.Errorf("%v fits 5 MiB", all)
	}
}

// TestFolded: a pipeline that turns is cut by time.
func TestFolded(t *testing.T) {
	paralleltest.Draw(2, 20, 10, 2, func(x *parallel.Simulator, s parallel.Shape) {
		s.Sequence = parallel.Sequence{Name: "zbv", Order: zbv.V{}}
		l := parallel.Limits{Stages: true, Sequences: []parallel.Sequence{s.Sequence}}
		all, why := Planner{}.Plans(x, l)
		if why != "" {
			t.Fatal(why)
		}
		if s.Cuts, _ = x.Cut(&s, 4); all[0].Result.Step > paralleltest.Step(x, &s) || all[0].Result.Step == unit.Forever {
			t.Errorf("%v is slower than %v", &all[0].Plan, s.Cuts)
		}
	})
}
