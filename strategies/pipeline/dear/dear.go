// Package dear sends gradients in two halves (DeAR, Zhang et al., ICDCS 2023;
// lzhangbv/dear_pytorch): the reduce-scatters during the backward pass, and the all-gathers,
// the first layer's first, during the next forward pass, in which a layer waits for its own.
// That is not always sooner than whole messages: a layer whose backward pass takes more than
// twice its forward pass may hide a whole message of another and then not its half.
//
// Left out: that its code sends an all-gather only when the forward pass has come to the group
// before; here all wait in the channel. The size of a message is searched on the model of the
// costs and not on measured iterations, so that every size is tried instead of the ten that its
// Bayesian optimisation draws.
package dear

import (
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
)

// Description is what DeAR says about itself.
var Description = strategy.Description{
	Name: "dear", System: "DeAR", Part: overlap.GradientsPart, Status: "read",
	Source: "DeAR (Zhang et al., ICDCS 2023), lzhangbv/dear_pytorch",
	Idea:   "reduce-scatters during the backward pass, all-gathers during the next forward pass",
	Goal:   "throughput", Needs: "a layer profile", Live: overlap.Live,
}

// LayersDescription is what DeAR by the number of layers says about itself.
var LayersDescription = strategy.Description{
	Name: "dear-layers", System: "DeAR", Part: overlap.GradientsPart, Status: "read",
	Source: Description.Source,
	Idea:   "as DeAR, four layers to a message",
	Goal:   "throughput", Needs: "a layer profile", Live: overlap.Live,
}

// SearchedDescription is what DeAR with a searched size says about itself.
var SearchedDescription = strategy.Description{
	Name: "dear-searched", System: "DeAR", Part: overlap.GradientsPart, Status: "after",
	Source: Description.Source,
	Idea:   "as DeAR, with messages of the size from 1 to 100 MiB under which an iteration takes least",
	Goal:   "throughput", Needs: "a layer profile", Live: overlap.Live,
}

// Sized merges layers up to 25 MiB, as DeAR's code does where nothing is said.
type Sized struct{}

// Numbered merges four layers.
type Numbered struct{}

// Searched looks for the best size.
type Searched struct{}

var _, _, _ overlap.Merger = Sized{}, Numbered{}, Searched{}

// Merge merges layers that are smaller together than the buffer.
func (Sized) Merge(c *overlap.Costs) overlap.Plan { return upTo(c, 25) }

// Merge merges so many layers.
func (Numbered) Merge(c *overlap.Costs) overlap.Plan {
	return split(c, func(layers int, _ int64) bool { return layers <= 4 })
}

// Merge tries every size, and takes the first of the best.
func (Searched) Merge(c *overlap.Costs) overlap.Plan {
	best, least := overlap.Plan{}, unit.Forever
	for size := unit.MiB(1); size <= 100; size++ {
		plan := upTo(c, size)
		if t, why := plan.Time(c); why == "" && t.Iteration < least {
			best, least = plan, t.Iteration
		}
	}
	return best
}

// upTo merges layers that are smaller together than a buffer.
func upTo(c *overlap.Costs, buffer unit.MiB) overlap.Plan {
	return split(c, func(_ int, kib int64) bool { return kib < int64(buffer)<<10 })
}

// split lets a message grow from the first layer on for as long as it fits, and sends it in
// halves. A layer without parameters goes with any, and is not counted.
func split(c *overlap.Costs, fits func(layers int, kib int64) bool) overlap.Plan {
	p := overlap.Plan{Sizes: []int32{0}, Split: true, Own: true}
	layers, kib := 0, int64(0)
	for _, l := range c.Layers {
		if l.ParamKiB > 0 {
			layers, kib = layers+1, kib+l.ParamKiB
		}
		if l.ParamKiB > 0 && layers > 1 && !fits(layers, kib) {
			p.Sizes = append(p.Sizes, 0)
			layers, kib = 1, l.ParamKiB
		}
		p.Sizes[len(p.Sizes)-1]++
	}
	slices.Reverse(p.Sizes)
	return p
}
