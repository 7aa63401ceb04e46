package varuna

import (
	"fmt"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"pgregory.net/rapid"
)

func TestConform(t *testing.T) {
	scheduletest.ConformPart(t, parallel.PlannerPart, func() any { return Morph{} })
}

// drawn is a model of like layers on devices that hold a few of them.
func drawn(t *rapid.T) *parallel.Simulator {
	c := make(paralleltest.Chain, rapid.IntRange(4, 24).Draw(t, "layers"))
	for i := range c {
		c[i] = parallel.Layer{Forward: 1000, Input: 1000, Weight: 1000, ParamKiB: 1024, ActivationKiB: 600, OutputKiB: 100, GFlop: 1}
	}
	if rapid.Bool().Draw(t, "embedding") {
		c[0].ParamKiB = 2048
	}
	m := &parallel.Model{Name: "drawn", Profile: c, Batch: rapid.IntRange(4, 48).Draw(t, "batch"), State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}}
	kind := parallel.Device{Name: "unit", TFlops: 1, Memory: unit.MiB(rapid.IntRange(16, 150).Draw(t, "memory"))}
	return parallel.NewSimulator(m, parallel.Even(kind, rapid.IntRange(1, 16).Draw(t, "devices"), 1, 10_000))
}

// TestBruteForce: no plan of the grid in which each number of stages has the largest microbatch
// that fits is faster than the one that is chosen, and that is one of them.
func TestBruteForce(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		x := drawn(t)
		q := parallel.Sequence{Name: "varuna", Order: Ordering{}}
		all, why := Morph{}.Plans(x, parallel.Limits{Sequences: []parallel.Sequence{q}})
		g, best, found := newGrid(x, parallel.Limits{}), unit.Forever, map[string]bool{}
		for stages := 1; stages <= x.On.Len(); stages++ {
			for way := range g.ways {
				var last parallel.Candidate
				for samples := 1; samples <= x.Model.Batch; samples++ {
					if x.Model.Batch%samples == 0 && (g.ends[1]-g.ends[0])%stages == 0 {
						if c, not := g.config(q, int8(way), stages, samples); not == "" {
							last = c
						}
					}
				}
				if last.Plan.Samples > 0 {
					best = min(best, last.Result.Step)
					found[fmt.Sprint(&last.Plan, way)] = true
				}
			}
		}
		if (why == "") != (len(found) > 0) {
			t.Fatalf("%q, brute force has %d plans", why, len(found))
		}
		if why == "" && all[0].Result.Step != best {
			t.Fatalf("%v takes %v, the best of the grid %v", &all[0].Plan, all[0].Result.Step, best)
		}
	})
}

// TestMorph: whatever is lost, the batch stays and no lost device is used.
func TestMorph(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		x := drawn(t)
		l := parallel.Limits{Sequences: []parallel.Sequence{{Name: "varuna", Order: Ordering{}}}}
		all, why := Morph{}.Plans(x, l)
		if why != "" {
			return
		}
		lost := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(x.On.Len()-1)), 0, x.On.Len()-1, rapid.ID[int32]).Draw(t, "lost")
		r, why := Morph{}.Recover(x, &all[0].Plan, lost, l)
		if why != "" {
			return
		}
		if r.Plan.Batch() != x.Model.Batch || !r.Restart {
			t.Fatalf("%v of a batch of %d, restart %v: expected the batch of %d and a restart", &r.Plan, r.Plan.Batch(), r.Restart, x.Model.Batch)
		}
		for _, d := range r.Plan.Devices() {
			for _, gone := range lost {
				if d == gone {
					t.Fatalf("%v uses device %d, which is lost", &r.Plan, d)
				}
			}
		}
	})
}
