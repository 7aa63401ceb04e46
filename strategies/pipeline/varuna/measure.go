package varuna

import (
	_ "embed" // for Claim
	"math/rand/v2"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
	"github.com/musterdl/muster/pipeline/shape"
)

// Claim is what is expected of the order, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the order against GPipe's that computes every forward pass again, which takes
// (m+p-1) times all passes of a microbatch, over drawn cases. The order that is made without
// costs is for passes that take equally long, and so are the cases. It also holds AutoConfig
// against brute force, and tells what is moved.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	pipelinetest.Draw(seed, 50, func(c pipelinetest.Case) {
		c.Input, c.Weight = c.Forward, c.Forward
		t := c.Time(Ordering{})
		r.Note("gpipe", float64(t.Makespan), float64(c.Microbatches+c.Ranks-1)*float64(c.All()+c.Forward))
	})
	r["autoconfig_off"], r["moved"] = autoConfig(seed, 30), moved()
	return r
}

// autoConfig counts, over drawn models and devices, where the plan is not the fastest of those in
// which each number of stages has the largest microbatch that fits, found one by one.
func autoConfig(seed uint64, cases int) (off float64) {
	dice := rand.New(rand.NewPCG(seed, 11))
	q := parallel.Sequence{Name: "varuna", Order: Ordering{}}
	for range cases {
		layers := make(paralleltest.Chain, 4+dice.IntN(20))
		for i := range layers {
			layers[i] = parallel.Layer{Forward: 1000, Input: 1000, Weight: 1000, ParamKiB: 1024, ActivationKiB: 600, OutputKiB: 100}
		}
		m := &parallel.Model{Profile: layers, Batch: 4 + dice.IntN(45), State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}}
		x := parallel.NewSimulator(m, parallel.Even(parallel.Device{Name: "unit", TFlops: 1, Memory: unit.MiB(16 + dice.IntN(130))}, 1+dice.IntN(16), 1, 10_000))
		g, best := newGrid(x, parallel.Limits{}), unit.Forever
		for _, stages := range g.stages {
			for way := range g.ways {
				last := unit.Forever
				for _, samples := range g.sizes {
					if c, why := g.config(q, int8(way), stages, samples); why == "" {
						last = c.Result.Step
					}
				}
				best = min(best, last)
			}
		}
		all, why := Morph{}.Plans(x, parallel.Limits{Sequences: []parallel.Sequence{q}})
		if (why == "") != (best < unit.Forever) || why == "" && all[0].Result.Step != best {
			off++
		}
	}
	return off
}

// moved is how many times more a device sends for a sample where 16 of them share every layer of a
// model of 2.2 billion parameters, 48 blocks of width 1920, than where each has a stage: sums
// in a ring, forward, forward again and backward, against an output and a gradient. Both compute
// everything again.
func moved() float64 {
	const tensor = 16
	p, whys := shape.New(shape.Shape{Name: "2.2b", Blocks: 48, Hidden: 1920, FFN: 4 * 1920, Heads: 16, Sequence: 1024, Vocabulary: 51200, Positions: 1024, Tied: true, Bias: true}, shape.Half)
	kind, why := shape.Device("V100-16GB", shape.Half)
	if len(whys) > 0 || why != "" {
		return 0
	}
	sums, output := 0., 0.
	for layer := range p.Layers() {
		ways, why := p.Ways(layer, &kind, tensor, 1)
		if why != "" {
			return 0
		}
		sums += 3 * 2. * (tensor - 1) / tensor * float64(ways[0].ReduceKiB)
		if layer == p.Layers()/2 {
			output = 2 * float64(ways[0].OutputKiB)
		}
	}
	return sums / output
}
