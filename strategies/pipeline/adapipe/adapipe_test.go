package adapipe

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
)

// every calls look with all ways of n layers, three each.
func every(n int, look func([]int8)) {
	ways := make([]int8, n)
	for {
		look(ways)
		i := 0
		for ; i < n && ways[i] == 2; i++ {
			ways[i] = 0
		}
		if i == n {
			return
		}
		ways[i]++
	}
}

// TestEqualsBruteForce: of all cuts and ways that fit none is simulated faster, and where none
// fits there is no plan.
func TestEqualsBruteForce(t *testing.T) {
	refused := 0
	paralleltest.DrawTight(1, 60, 5, 3, func(x *parallel.Simulator, s parallel.Shape) {
		least := unit.Forever
		every(5, func(ways []int8) {
			s.Ways = slices.Clone(ways)
			least = min(least, paralleltest.Least(x, s))
		})
		refused += holds(t, x, s, least)
	})
	if refused == 0 || refused == 60 {
		t.Errorf("%d of 60 cases do not fit: expected some", refused)
	}
}

// TestEqualsBruteForceOfStages: the same of 8 layers, where each stage has the fastest ways of all
// that fit it: the passes of a stage that are shorter make no step longer.
func TestEqualsBruteForceOfStages(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 50
	}
	for ranks := 2; ranks <= 3; ranks++ {
		paralleltest.DrawTight(2, cases/10, 8, ranks, func(x *parallel.Simulator, s parallel.Shape) {
			least := unit.Forever
			paralleltest.Cuts(8, ranks, func(cuts []int32) {
				s.Cuts, s.Ways = cuts, make([]int8, 8)
				first := int32(0)
				for stage, end := range append(slices.Clone(cuts), 8) {
					copy(s.Ways[first:end], fastest(x, int64(ranks-stage), first, end))
					first = end
				}
				least = min(least, paralleltest.Step(x, &s))
			})
			holds(t, x, s, least)
		})
	}
}

// fastest tries all ways of the layers of a stage; those of a stage that cannot be are the first.
func fastest(x *parallel.Simulator, inFlight int64, first, end int32) []int8 {
	best, found := unit.Forever, make([]int8, end-first)
	every(int(end-first), func(ways []int8) {
		all := make([]int8, 8)
		copy(all[first:end], ways)
		one, _, _ := x.Stage(&parallel.Rank{Tensor: 1, Replicas: 1, Devices: []int32{0}}, parallel.Slice{First: int(first), End: int(end), Ways: all}, 1, 1)
		took := one.Forward + one.Input + one.Weight
		if one.ParamKiB+one.StateKiB+inFlight*one.ActivationKiB <= int64(x.On.Kinds[0].Memory)<<10 && took < best {
			best, found = took, slices.Clone(ways)
		}
	})
	return found
}

// holds compares what is found with what is least, and counts what does not fit.
func holds(t *testing.T, x *parallel.Simulator, s parallel.Shape, least unit.Duration) int {
	t.Helper()
	s.Ways = nil
	found, why := adapt(x, &s, false)
	if (why == "") != (least < unit.Forever) {
		t.Fatalf("%v (%s), of all ways and cuts the least is %d", found, why, least)
	}
	if why != "" {
		return 1
	}
	if got := found[0].Result.Step; got != least {
		t.Errorf("cuts %v, ways %v take %d, the least is %d", found[0].Plan.Pipelines[0].Cuts, found[0].Plan.Pipelines[0].Ways, got, least)
	}
	return 0
}

// TestForm: no step under 1F1B is shorter than the closed form says, and many are as long; also
// with fewer microbatches than stages.
func TestForm(t *testing.T) {
	exact, all := 0, 0
	for _, fewer := range []int{0, 3} {
		paralleltest.Draw(3, 300, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
			if fewer > 0 {
				x.Model.Batch, s.Microbatches = fewer, fewer
			}
			c, _ := newChoice(x, &s, true)
			for _, f := range c.cuts(s.Microbatches) {
				s.Cuts = f.first[1:]
				step := paralleltest.Step(x, &s)
				if step < f.step {
					t.Fatalf("cut %v of %d microbatches takes %d, the form says %d", s.Cuts, s.Microbatches, step, f.step)
				}
				if all++; step == f.step {
					exact++
				}
			}
		})
	}
	if share := float64(exact) / float64(all); share < 0.2 || share > 0.9 {
		t.Errorf("the form is exact in %.2f of cases", share)
	}
}

// TestUniform: none is slower than the best of all cuts that runs all layers in one way.
func TestUniform(t *testing.T) {
	faster := 0
	paralleltest.DrawTight(4, 100, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
		least := unit.Forever
		for way := range int8(3) {
			s.Ways = x.AllIn(way, 1)
			least = min(least, paralleltest.Least(x, s))
		}
		s.Ways = nil
		found, why := adapt(x, &s, false)
		if why != "" {
			if least < unit.Forever {
				t.Errorf("no plan (%s), but all layers in one way fit", why)
			}
			return
		}
		if found[0].Result.Step > least {
			t.Errorf("%d, all layers in one way take %d", found[0].Result.Step, least)
		} else if found[0].Result.Step < least {
			faster++
		}
	})
	if faster < 10 {
		t.Errorf("faster than all in one way in %d of 100 cases", faster)
	}
}

// TestThin: of more sets than are kept the leanest and the fastest stay.
func TestThin(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 1))
	sets := []set{{}}
	var lean, full int64
	for range 40 {
		keep, again := 1000+dice.Int64N(100_000), unit.Duration(100+dice.IntN(900))
		sets = extend(sets, []pipeline.Stage{{ActivationKiB: keep}, {ActivationKiB: keep / 2, Input: again / 3}, {ActivationKiB: keep / 10, Input: again}})
		lean, full = lean+keep/10, full+keep
	}
	if n := len(sets); n > mostSets+2 || n < mostSets/2 || sets[0].kept != lean || sets[n-1].kept != full || sets[n-1].both() != 0 {
		t.Errorf("%d sets from %d to %d KiB, expected from %d to %d", n, sets[0].kept, sets[n-1].kept, lean, full)
	}
	if !slices.IsSortedFunc(sets, func(a, b set) int { return cmp.Or(cmp.Compare(a.kept, b.kept), cmp.Compare(b.both(), a.both())) }) {
		t.Error("a set keeps more and is no faster than one before")
	}
}
