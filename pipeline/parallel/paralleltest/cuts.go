package paralleltest

import (
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// OneFOneB is the order of passes for which cuts are drawn.
var OneFOneB = parallel.Sequence{Name: "1f1b", Order: alternate{}}

type alternate struct{}

// Schedule lets each rank be ahead by those behind it.
func (alternate) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	for r := range ranks {
		s.Line(r).Alternate(pipeline.Chunk{Stage: int32(r)}, ranks-1-r)
	}
	return s, ""
}

// Uneven draws a chain of layers that are not alike. What they hold, keep and send is between 1
// and 100 MiB each.
func Uneven(dice *rand.Rand, layers int) Chain {
	pass := func() unit.Duration { return unit.Duration(100 + dice.IntN(900)) }
	mib := func() int64 { return (1 + dice.Int64N(100)) << 10 }
	c := make(Chain, layers)
	for i := range c {
		c[i] = parallel.Layer{Forward: pass(), Input: pass(), Weight: pass(), ParamKiB: mib(), ActivationKiB: mib(), OutputKiB: mib(), GFlop: 1}
	}
	return c
}

// Graded is a chain whose layers have a third way between the two: half of the activations go,
// for a quarter of the forward pass.
type Graded struct{ Chain }

// Ways are three.
func (g Graded) Ways(layer int, on *parallel.Device, tensor, samples int) ([]parallel.Layer, parallel.Why) {
	all, why := g.Chain.Ways(layer, on, tensor, samples)
	if why != "" {
		return nil, why
	}
	half := all[0]
	half.Way, half.Again, half.ActivationKiB = "half", half.Forward/4, (half.ActivationKiB+all[1].ActivationKiB)/2
	return slices.Insert(all, 1, half), ""
}

// Draw has so many cases looked at, drawn by seed: uneven layers, to be cut for 1F1B on like
// devices, with 1 to 4 times as many microbatches.
func Draw(seed uint64, cases, layers, ranks int, look func(x *parallel.Simulator, s parallel.Shape)) {
	draw(seed, cases, layers, ranks, func(m *parallel.Model, _ *rand.Rand, s parallel.Shape) {
		look(parallel.NewSimulator(m, parallel.Even(parallel.Device{TFlops: 1}, ranks, 1, 0)), s)
	})
}

// DrawTight does the same with graded layers and devices of so little memory that most cases have
// to compute something again, and some do not fit at all.
func DrawTight(seed uint64, cases, layers, ranks int, look func(x *parallel.Simulator, s parallel.Shape)) {
	draw(seed, cases, layers, ranks, func(m *parallel.Model, dice *rand.Rand, s parallel.Shape) {
		m.Profile = Graded{m.Profile.(Chain)}
		mib := 150 * layers / ranks
		look(parallel.NewSimulator(m, parallel.Even(parallel.Device{Name: "unit", TFlops: 1, Memory: unit.MiB(mib + dice.IntN(3*mib))}, ranks, 1, 0)), s)
	})
}

func draw(seed uint64, cases, layers, ranks int, look func(m *parallel.Model, dice *rand.Rand, s parallel.Shape)) {
	dice := rand.New(rand.NewPCG(seed, 1))
	for range cases {
		m := parallel.Model{Profile: Uneven(dice, layers), Batch: ranks + dice.IntN(3*ranks+1), State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}}
		look(&m, dice, parallel.Shape{Sequence: OneFOneB, Samples: 1, Microbatches: m.Batch, Tensor: 1, Ranks: ranks, Copies: 1, Cuts: make([]int32, ranks-1)})
	}
}

// Least is the shortest step of all cuts of a shape, Forever where none fits.
func Least(x *parallel.Simulator, s parallel.Shape) unit.Duration {
	least := unit.Forever
	Cuts(x.Model.Profile.Layers(), s.Ranks, func(cuts []int32) {
		s.Cuts = cuts
		least = min(least, Step(x, &s))
	})
	return least
}

// Step is what a shape takes, Forever where it does not fit.
func Step(x *parallel.Simulator, s *parallel.Shape) unit.Duration {
	plan := s.Plan()
	if r, why := x.Simulate(&plan); why == "" {
		return r.Step
	}
	return unit.Forever
}

// Cuts calls look with all cuts of n layers into so many stages, in order.
func Cuts(n, stages int, look func([]int32)) {
	var rest func(cuts []int32, first int)
	rest = func(cuts []int32, first int) {
		if len(cuts) == stages-1 {
			look(slices.Clone(cuts))
			return
		}
		for cut := first; cut <= n-(stages-1-len(cuts)); cut++ {
			rest(append(cuts, int32(cut)), cut+1)
		}
	}
	rest(nil, 1)
}
