package parallel_test

import (
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/strategies/pipeline/chimera"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/hanayo"
	"github.com/musterdl/muster/strategies/pipeline/interleaved"
	"github.com/musterdl/muster/strategies/pipeline/varuna"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

var sequences = []parallel.Sequence{sequence, {Name: "gpipe", Order: gpipe.Ordering{}}, {Name: "zb-h1", Order: zerobubble.H1{}}, {Name: "zbv", Order: zbv.V{}}}

// drawn is a model of unlike layers, and devices with too little memory for some plans.
func drawn(rng *rand.Rand) (*parallel.Model, *parallel.Devices) {
	c := make(paralleltest.Chain, 4+rng.IntN(12))
	for i := range c {
		f := unit.Duration(500 + rng.IntN(2000))
		c[i] = parallel.Layer{Forward: f, Input: f, Weight: f * unit.Duration(1+rng.IntN(2)), ParamKiB: int64(1024 * (1 + rng.IntN(4))),
			ActivationKiB: int64(1024 * (1 + rng.IntN(8))), OutputKiB: int64(64 << rng.IntN(5)), GFlop: 1}
	}
	kind := parallel.Device{Name: "unit", TFlops: 1, Memory: unit.MiB(60 + rng.IntN(200)), Inside: parallel.Link{Bandwidth: 1 << 16}}
	m := &parallel.Model{Profile: c, Batch: 8 << rng.IntN(3), State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2, Sharded: rng.IntN(2) == 0}}
	return m, parallel.Even(kind, 1<<rng.IntN(3), 1<<rng.IntN(3), unit.Mbps(1<<(10+rng.IntN(6))))
}

// every simulates all plans of like pipelines, and returns the fastest step.
func every(x *parallel.Simulator) unit.Duration {
	best, n, layers := unit.Forever, x.On.Len(), x.Model.Profile.Layers()
	for _, q := range sequences {
		for tensor := 1; tensor <= 2; tensor++ {
			for ranks := 1; ranks <= min(n, layers); ranks++ {
				copies := n / tensor / ranks
				if copies == 0 || copies*tensor*ranks != n || x.Model.Batch%copies != 0 {
					continue
				}
				for samples := 1; samples <= x.Model.Batch/copies; samples++ {
					for which := range 2 * (1 + x.Experts(tensor)) {
						way, experts := which%2, which/2
						if x.Model.Batch/copies%samples != 0 || experts == 1 {
							continue
						}
						s := parallel.Shape{Sequence: q, Samples: samples, Microbatches: x.Model.Batch / copies / samples, Tensor: tensor, Ranks: ranks, Copies: copies, Experts: experts}
						if plan := s.Plan(); experts > 0 && plan.Check(x.Model, x.On) != "" {
							continue
						}
						if way > 0 {
							s.Ways = make([]int8, layers)
							for i := range s.Ways {
								s.Ways[i] = 1
							}
						}
						shape, why := q.Order.Schedule(ranks, s.Microbatches, nil)
						if why != "" || shape.Stages() > layers {
							continue
						}
						s.Cuts, _ = x.Cut(&s, shape.Stages())
						plan := s.Plan()
						if r, why := x.Simulate(&plan); why == "" {
							best = min(best, r.Step)
						}
					}
				}
			}
		}
	}
	return best
}

// TestGrid: the search finds a plan where there is one, and hardly ever one that is slower than
// the best of all plans of its kind.
func TestGrid(t *testing.T) {
	rng, launches, slower, none := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4)), 0, 0
	const draws = 300
	for i := range draws {
		m, on := drawn(rng)
		if i%2 > 0 { // small passes cost more, and both ends of a border wait
			on.Kinds[0].Launch, m.Waits = unit.Duration(launches.IntN(3000)), i%4 > 1
		}
		want := every(parallel.NewSimulator(m, on))
		g := parallel.Grid{Sequences: sequences}
		all, why := g.Search(parallel.NewSimulator(m, on), parallel.Limits{})
		switch {
		case (why == "") != (want < unit.Forever):
			t.Errorf("draw %d: %q, and the best of all takes %v", i, why, want)
		case why != "":
			none++
		case float64(all[0].Result.Step) > 1.001*float64(want):
			slower++
			t.Logf("draw %d: %v takes %v, the best of all %v", i, &all[0].Plan, all[0].Result.Step, want)
		}
	}
	t.Logf("%d of %d have no plan, %d are slower than the best", none, draws, slower)
	if slower > draws/50 || none > draws/2 {
		t.Errorf("%d of %d slower than the best of all, %d without a plan: expected 2 %% at most, and half", slower, draws, none)
	}
}

// TestLeast: no plan takes less than the least by which the search passes it over, whatever its sequence,
// and with 1F1B over equal layers and links that cost nothing none takes more.
func TestLeast(t *testing.T) {
	all := append([]parallel.Sequence{{Name: "varuna", Order: varuna.Ordering{}}, {Name: "interleaved", Order: interleaved.New(interleaved.Default())},
		{Name: "hanayo", Order: hanayo.New(hanayo.Default())}, {Name: "chimera", Order: chimera.New(chimera.Default())}, {Name: "zb-h2", Order: zerobubble.H2{}}}, sequences...)
	said := map[string]int{}
	for seed, q := range all {
		paralleltest.Draw(uint64(seed), 200, 12, 3, func(x *parallel.Simulator, s parallel.Shape) {
			s.Sequence = q
			if shape, why := q.Order.Schedule(s.Ranks, s.Microbatches, nil); why != "" {
				return
			} else if s.Cuts, why = x.Cut(&s, shape.Stages()); why != "" {
				return
			}
			least, step := parallel.LeastOf(x, &s), paralleltest.Step(x, &s)
			if least > step {
				t.Errorf("%s, %d microbatches, cuts %v: at least %v, and it takes %v", q.Name, s.Microbatches, s.Cuts, least, step)
			}
			if least > 0 {
				said[q.Name]++
			}
		})
	}
	t.Log(said)
	for _, q := range all {
		if q.Name != "chimera" && said[q.Name] < 50 {
			t.Errorf("%s: the least said something in %d of 200 draws", q.Name, said[q.Name])
		}
	}
	chain := make(paralleltest.Chain, 8)
	for i := range chain {
		chain[i] = parallel.Layer{Forward: 1000, Input: 1500, Weight: 500}
	}
	x := parallel.NewSimulator(&parallel.Model{Profile: chain, Batch: 6}, parallel.Even(parallel.Device{TFlops: 1}, 4, 1, 0))
	s := parallel.Shape{Sequence: sequence, Samples: 1, Microbatches: 6, Tensor: 1, Ranks: 4, Copies: 1, Cuts: []int32{2, 4, 6}}
	if least, step := parallel.LeastOf(x, &s), paralleltest.Step(x, &s); least != step || step != 9*6000 {
		t.Errorf("1F1B over equal layers takes %v, at least %v: expected (6 + 3) times 6 ms", step, least)
	}
}
