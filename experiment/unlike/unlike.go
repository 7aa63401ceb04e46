// Package unlike holds planners against the usual default on models whose layers are unlike:
// interleaved 1F1B over stages of equally many layers. An embedding or a head of a large
// vocabulary, experts and encoders of images each make some layers longer than others.
package unlike

import (
	_ "embed" // for Claim
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Claim is what must hold, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Sides are who is compared.
type Sides struct {
	Planners  []parallel.Planner
	Sequences []parallel.Sequence
	// Folded is interleaved 1F1B with so many chunks; of one it is 1F1B.
	Folded func(chunks int) pipeline.Ordering
}

// case is a model over so many ranks of so many devices.
type one struct {
	figure        string
	model         parallel.Profile
	ranks, tensor int
}

// Measure compares them on every model, and delays a link.
func Measure(s Sides) func(seed uint64) map[string]float64 {
	return func(uint64) map[string]float64 {
		got, least := map[string]float64{}, math.Inf(1)
		for _, c := range models() {
			x := c.simulator(0)
			base, best := s.byNumber(x, &c), s.planned(x, &c)
			if base.Step == 0 || best.Step == 0 {
				continue // then the figure is missing, and its line says so
			}
			got[c.figure] = base.Step.Seconds() / best.Step.Seconds()
			least = min(least, got[c.figure])
		}
		got["least"] = least
		s.delay(got)
		return got
	}
}

// models are those of the claim.
func models() []one {
	gemma := func(blocks, hidden, ffn, heads int) *shape.Profile {
		return profile(shape.Shape{Name: "gemma", Blocks: blocks, Hidden: hidden, FFN: ffn, Heads: heads, HeadWidth: 256, Sequence: 8192, Vocabulary: 256128,
			Gated: true, Fused: true, Tied: true})
	}
	lite := shape.Shape{Name: "deepseek-v2-lite", Blocks: 27, Hidden: 2048, FFN: 10944, Heads: 16, Sequence: 4096, Vocabulary: 102400, Gated: true, Fused: true,
		Experts: &shape.Experts{Count: 64, FFN: 1408, Chosen: 6, Shared: 2, Dense: 1}}
	eye := func(name string) joined {
		s, _ := shape.Find(name)
		s.Headless = true // its last block feeds the model behind it
		return joined{profile(s), preset("llama-3-8b")}
	}
	return []one{
		{"gemma2", gemma(18, 2048, 16384, 8), 6, 1}, {"gemma7", gemma(28, 3072, 24576, 16), 7, 1}, {"llama8", preset("llama-3-8b"), 8, 1},
		{"lite", profile(lite), 3, 8}, {"mixtral", preset("mixtral"), 8, 4},
		{"small_eye", eye("vit-h"), 8, 1}, {"large_eye", eye("vit-22b"), 8, 2}, {"even", preset("gpt-3"), 8, 8},
	}
}

func preset(name string) *shape.Profile {
	s, _ := shape.Find(name)
	return profile(s)
}

func profile(s shape.Shape) *shape.Profile {
	p, _ := shape.New(s, shape.Half)
	return p
}

// joined is models one behind the other.
type joined []*shape.Profile

// Layers are those of all.
func (j joined) Layers() (n int) {
	for _, p := range j {
		n += p.Layers()
	}
	return n
}

// Ways are those of the model that the layer is of.
func (j joined) Ways(layer int, on *parallel.Device, tensor, samples int) ([]parallel.Layer, parallel.Why) {
	at := 0
	for layer >= j[at].Layers() {
		layer -= j[at].Layers()
		at++
	}
	return j[at].Ways(layer, on, tensor, samples)
}

// simulator is one of the case on nodes of 8, the second half of which is at another site where
// the link between the halves is delayed.
func (c *one) simulator(delay unit.Duration) *parallel.Simulator {
	device, _ := shape.Device("H100", shape.Half)
	each := min(8, c.ranks*c.tensor)
	on := parallel.Even(device, (c.ranks*c.tensor+each-1)/each, each, unit.Mbps(each)*400_000)
	if delay > 0 {
		on = parallel.Even(device, c.ranks*c.tensor, 1, 400_000)
		for i := range on.Nodes {
			on.Nodes[i].Site = int32(2 * i / len(on.Nodes))
		}
		on.Sites = [][]parallel.Link{{{}, {Latency: delay}}, {{Latency: delay}, {}}}
	}
	return parallel.NewSimulator(&parallel.Model{Profile: c.model, Batch: 8 * c.ranks, State: parallel.MixedAdam}, on)
}

// planned is the fastest plan of the planners.
func (s *Sides) planned(x *parallel.Simulator, c *one) (best parallel.Result) {
	for _, p := range s.Planners {
		all, why := p.Plans(x, parallel.Limits{Tensor: c.tensor, Ranks: c.ranks, Copies: 1, Sequences: s.Sequences})
		if why == "" && (best.Step == 0 || all[0].Result.Step < best.Step) {
			best = all[0].Result
		}
	}
	return best
}

// byNumber is the fastest plan of stages of equally many layers.
func (s *Sides) byNumber(x *parallel.Simulator, c *one) (best parallel.Result) {
	n := c.model.Layers()
	divides := (n-2)%c.ranks == 0 // blocks alone: the embedding goes with the first, the head with the last
	for chunks := 1; chunks <= 8 && c.ranks*chunks <= n; chunks++ {
		stages := c.ranks * chunks
		cuts := pipeline.EqualCuts(n, stages)
		if divides {
			if (n-2)%stages != 0 {
				continue // Megatron-LM refuses it
			}
			cuts = pipeline.EqualCuts(n-2, stages)
			for i := range cuts {
				cuts[i]++
			}
		}
		for way := range int8(3) {
			ways := make([]int8, n)
			for i := range ways {
				all, _ := x.Ways(i, 0, c.tensor, 1)
				ways[i] = min(way, int8(len(all)-1))
			}
			for _, samples := range []int{1, 2} {
				shape := parallel.Shape{Sequence: parallel.Sequence{Name: "folded", Order: s.Folded(chunks)}, Samples: samples,
					Microbatches: x.Model.Batch / samples, Tensor: c.tensor, Ranks: c.ranks, Copies: 1, Cuts: slices.Clone(cuts), Ways: ways}
				plan := shape.Plan()
				plan.Sequence.Name += string(rune('0' + chunks))
				if r, why := x.Simulate(&plan); why == "" && (best.Step == 0 || r.Step < best.Step) {
					best = r
				}
			}
		}
	}
	return best
}

// delay is what a delayed link in the middle of a pipeline costs, planned anew, over the two
// delays that nothing avoids.
func (s *Sides) delay(got map[string]float64) {
	c := one{model: preset("llama-3-8b"), ranks: 8, tensor: 1}
	calm := s.planned(c.simulator(1), &c)
	if calm.Step == 0 {
		return
	}
	pass := calm.Step / unit.Duration(3*8*c.ranks) // a pass forward is about a third of a microbatch's turn
	for figure, delay := range map[string]unit.Duration{"delay_tenth": pass / 10, "delay_one": pass} {
		if r := s.planned(c.simulator(delay), &c); r.Step > 0 {
			got[figure] = (r.Step - calm.Step).Seconds() / (2 * delay.Seconds())
		}
	}
}
