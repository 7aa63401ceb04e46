// Package overlaptest draws stages and layers of experts for tests and claims about what is
// sent while they compute, and tries every way to group or to order what is sent.
package overlaptest

import (
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
)

// Stages has so many stages looked at, drawn by seed: of 2 to 9 layers, whose passes take 1 to
// 1,000 us and whose gradients are 1 to 1,000 KiB; a start-up takes up to 1,000 us, and a KiB
// up to 3 us.
func Stages(seed uint64, cases int, look func(c *overlap.Costs)) {
	r := rand.New(rand.NewPCG(seed, 2))
	pass := func() unit.Duration { return unit.Duration(1 + r.IntN(1000)) }
	for range cases {
		c := overlap.Costs{Start: unit.Duration(r.IntN(1001)), MicrosPerKiB: 3 * r.Float64()}
		for range 2 + r.IntN(8) {
			c.Layers = append(c.Layers, pipeline.Stage{Forward: pass(), Input: pass(), Weight: pass(),
				ParamKiB: 1 + r.Int64N(1000), OutputKiB: 1 + r.Int64N(1000), ActivationKiB: 1 + r.Int64N(1000)})
		}
		look(&c)
	}
}

// Soonest is the shortest iteration of all ways to merge neighbouring layers into messages
// that the next forward pass awaits.
func Soonest(c *overlap.Costs) unit.Duration {
	n, least := len(c.Layers), unit.Forever
	for cuts := range 1 << (n - 1) { // a bit for each pair of neighbours: they are apart
		p := overlap.Plan{Sizes: []int32{1}}
		for i := range n - 1 {
			if cuts>>i&1 == 1 {
				p.Sizes = append(p.Sizes, 1)
			} else {
				p.Sizes[len(p.Sizes)-1]++
			}
		}
		least = min(least, Iteration(&p, c))
	}
	return least
}

// Iteration is that of a plan, which must be one for the costs.
func Iteration(p *overlap.Plan, c *overlap.Costs) unit.Duration {
	t, why := p.Time(c)
	if why != "" {
		panic(why)
	}
	return t.Iteration
}

// Chains has so many chains of pieces looked at, drawn by seed: of 0 to 100 us each, and the
// all-to-all back as long as that there where they are even.
func Chains(seed uint64, cases int, even bool, look func(c *overlap.Chain)) {
	r := rand.New(rand.NewPCG(seed, 3))
	for range cases {
		var c overlap.Chain
		for i := range c {
			c[i] = unit.Duration(r.IntN(101))
		}
		if even {
			c[overlap.SendBack] = c[overlap.Send]
		}
		look(&c)
	}
}

// Layers has so many layers of experts looked at, drawn by seed: on 1 to 16 nodes of 1 to 8
// devices, of up to 5 ms and 16 MiB to send over up to 100 Gbit/s, with one codec.
func Layers(seed uint64, cases int, look func(e *overlap.Experts)) {
	r := rand.New(rand.NewPCG(seed, 4))
	link := func(most int) pipeline.Link {
		return pipeline.Link{Bandwidth: unit.Mbps(1000 + r.IntN(most)), Latency: unit.Duration(r.IntN(20))}
	}
	for range cases {
		e := overlap.Experts{Compute: unit.Duration(1 + r.IntN(5000)), Launch: unit.Duration(r.IntN(50)), KiB: r.Int64N(1 << 14),
			Nodes: 1 + r.IntN(16), PerNode: 1 + r.IntN(8), Within: link(400_000), Between: link(100_000)}
		e.Codecs = []overlap.Codec{{Name: "drawn", Part: .25 + r.Float64()/2, Compress: unit.Duration(r.IntN(500)), Decompress: unit.Duration(r.IntN(500))}}
		look(&e)
	}
}

// OfTwo is the shortest time of two chunks in any order, and how many orders there are; some of
// them cannot run.
func OfTwo(c *overlap.Chain) (least unit.Duration, orders int) {
	least = unit.Forever
	var computed, sent []overlap.Piece
	for p := range overlap.Piece(len(c)) {
		if p == overlap.Send || p == overlap.SendBack {
			sent = append(sent, p)
		} else {
			computed = append(computed, p)
		}
	}
	for _, stream := range interleavings(computed) {
		for _, channel := range interleavings(sent) {
			if t, why := c.Time(overlap.Order{Stream: stream, Channel: channel}); why == "" {
				least = min(least, t.Iteration)
			}
			orders++
		}
	}
	return least, orders
}

// interleavings are all orders of the same pieces of two chunks.
func interleavings(pieces []overlap.Piece) (all [][]overlap.Step) {
	var extend func(done [2]int, order []overlap.Step)
	extend = func(done [2]int, order []overlap.Step) {
		if len(order) == 2*len(pieces) {
			all = append(all, slices.Clone(order))
			return
		}
		for k, n := range done {
			if n < len(pieces) {
				next := done
				next[k]++
				extend(next, append(order, overlap.Step{Piece: pieces[n], Chunk: k}))
			}
		}
	}
	extend([2]int{}, nil)
	return all
}
