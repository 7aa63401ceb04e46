package paralleltest

import (
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// OneFOneB is the order of passes for which cuts are drawn, GPipe another.
var (
	OneFOneB = parallel.Sequence{Name: "1f1b", Order: alternate{}}
	GPipe    = parallel.Sequence{Name: "gpipe", Order: alternate{all: true}}
)

type alternate struct{ all bool }

// Schedule lets each rank be ahead by those behind it, or by all microbatches.
func (a alternate) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	for r := range ranks {
		ahead := ranks - 1 - r
		if a.all {
			ahead = microbatches
		}
		s.Line(r).Alternate(pipeline.Chunk{Stage: int32(r)}, ahead)
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

// Orders calls look with all orders of some devices.
func Orders(devices []int32, look func([]int32)) {
	var rest func(at int)
	rest = func(at int) {
		if at == len(devices) {
			look(devices)
			return
		}
		for i := at; i < len(devices); i++ {
			devices[at], devices[i] = devices[i], devices[at]
			rest(at + 1)
			devices[at], devices[i] = devices[i], devices[at]
		}
	}
	rest(0)
}

// Unlike draws up to 8 uneven layers, to be trained on up to four devices of up to three kinds in
// nodes of one or two, whose links are not alike.
func Unlike(dice *rand.Rand) *parallel.Simulator {
	d := &parallel.Devices{}
	for range 3 {
		d.Kinds = append(d.Kinds, parallel.Device{Name: "unit", TFlops: float64(1+dice.IntN(8)) / 2, Memory: unit.MiB(400 + dice.IntN(2000)),
			Inside: parallel.Link{Bandwidth: unit.Mbps(1000 + dice.IntN(5_000_000))}})
	}
	for left := 1 + dice.IntN(4); left > 0; {
		n := 1 + dice.IntN(min(2, left))
		left -= n
		d.Nodes = append(d.Nodes, parallel.Node{Kind: int32(dice.IntN(3)), Count: int32(n), Out: unit.Mbps(1_000_000 * (1 + dice.IntN(2)))})
	}
	d.Index()
	return parallel.NewSimulator(&parallel.Model{Profile: Uneven(dice, d.Len()+dice.IntN(9-d.Len())), Batch: 8,
		State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}}, d)
}
