// Package overlap is what a stage sends while it computes: the gradients of its layers, where
// the stage has several replicas, and the tokens of its experts, where they are spread over
// devices. It declares what a strategy decides about that, and tells by the task graph what an
// iteration then takes. There is one stream of computation and one channel, and both are at
// work at once where what is sent waits for nothing.
//
// A planner asks. No run is told what is decided here, so that no composition has these parts.
package overlap

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Live says why no process goes by what is decided here.
const Live = "cannot, because no run is told how to exchange its gradients: plans are timed with it"

// GradientsPart says in which messages replicas exchange their gradients.
var GradientsPart = strategy.NewPart[Merger](strategy.Part{Name: "gradients", Rank: 92, Step: "pipeline", Null: "one-exchange", Default: "one-exchange"})

// Merger merges the gradients of layers into messages.
type Merger interface {
	// Merge returns a plan for costs that Check finds nothing wrong with.
	Merge(c *Costs) Plan
}

// Costs are what a stage computes, and what it takes to exchange gradients with its replicas.
type Costs struct {
	// Layers are those of the stage, each as what a microbatch takes and leaves there. Of an
	// iteration of several microbatches, these are the last backward pass and the first
	// forward pass: nothing is exchanged during the others.
	Layers []pipeline.Stage
	// Start is what an exchange takes whatever its size, and MicrosPerKiB what it takes
	// besides: the a and b of an all-reduce, measured or as Ring says.
	Start        unit.Duration
	MicrosPerKiB float64
	// Memory is what activations and gradients of outputs may take; 0 is unlimited.
	Memory unit.MiB
}

// Ring are the costs of an all-reduce around a ring of replicas, over a link of each to the
// next: 2 (n-1) steps, each of which moves the nth part. One replica exchanges nothing.
func Ring(layers []pipeline.Stage, replicas int, link pipeline.Link) Costs {
	c, steps := Costs{Layers: layers}, 2*(replicas-1)
	if steps <= 0 {
		return c
	}
	c.Start = unit.Duration(steps) * link.Latency
	if link.Bandwidth > 0 { // a megabit per second is a bit per microsecond
		c.MicrosPerKiB = 8 * 1024 / float64(link.Bandwidth) * float64(steps) / float64(replicas)
	}
	return c
}

// Takes is how long an exchange of so much takes; to exchange nothing takes no time.
func (c *Costs) Takes(kib int64) unit.Duration {
	if kib == 0 {
		return 0
	}
	return c.Start + unit.Duration(math.Ceil(float64(kib)*c.MicrosPerKiB))
}

// Ready is by layer when its gradients are there, from the beginning of the backward pass,
// where they are computed from the last layer to the first.
func (c *Costs) Ready() []unit.Duration {
	ready, now := make([]unit.Duration, len(c.Layers)), unit.Duration(0)
	for l := range slices.Backward(c.Layers) {
		now += c.Layers[l].Of(pipeline.Backward)
		ready[l] = now
	}
	return ready
}

// Check says what is wrong with the costs.
func (c *Costs) Check() pipeline.Why {
	if len(c.Layers) == 0 || c.Start < 0 || c.Start > longest || c.Memory < 0 || !(c.MicrosPerKiB >= 0 && c.MicrosPerKiB <= slowest) {
		return whyf("%d layers, an exchange of %d microseconds and %g per KiB, %v: expected a layer at least, 0 to an hour, 0 to %g and nothing negative",
			len(c.Layers), int64(c.Start), c.MicrosPerKiB, c.Memory, float64(slowest))
	}
	for i, l := range c.Layers {
		if least, most := min(l.Forward, l.Input, l.Weight), max(l.Forward, l.Input, l.Weight); least < 0 || most > longest {
			return whyf("layer %d: passes of %d, %d and %d microseconds: expected 0 to an hour", i, int64(l.Forward), int64(l.Input), int64(l.Weight))
		}
		if least, most := min(l.ParamKiB, l.OutputKiB, l.ActivationKiB), max(l.ParamKiB, l.OutputKiB, l.ActivationKiB); least < 0 || most > largestKiB {
			return whyf("layer %d: sizes %d, %d and %d KiB: expected 0 to %d", i, l.ParamKiB, l.OutputKiB, l.ActivationKiB, int64(largestKiB))
		}
	}
	return ""
}

// What may be said of a layer and of an exchange: sums within these bounds stay far from
// overflow.
const (
	longest    = unit.Hour
	largestKiB = 1 << 30
	slowest    = 1e4 // microseconds for a KiB: less than a megabit per second
)

// Plan is in which messages the gradients of a stage are exchanged, and who waits for them.
type Plan struct {
	// Sizes are the layers whose gradients are in each message, in the order in which the
	// messages are sent: that in which the gradients are computed.
	Sizes []int32
	// Reverse is of how many first layers the gradients of weights come after everything
	// else, from the first layer on; all others come from the last layer to the first.
	Reverse int32
	// Split sends each message as a reduce-scatter, of half its time, and when all of those are
	// sent as an all-gather, the first layer's first.
	Split bool
	// Own lets the next forward pass of a layer wait for its own message only, not for all.
	Own bool
}

// Whole is one message when the backward pass is over.
func Whole(layers int) Plan { return Plan{Sizes: []int32{int32(layers)}} }

// Single is a message for each layer.
func Single(layers int) Plan { return Plan{Sizes: slices.Repeat([]int32{1}, layers)} }

// Order is the layers in the order in which the gradients of their weights are computed.
func (p *Plan) Order(layers int) []int32 {
	order := make([]int32, 0, layers)
	for l := int32(layers) - 1; l >= p.Reverse; l-- {
		order = append(order, l)
	}
	for l := range p.Reverse {
		order = append(order, l)
	}
	return order
}

// Passes are what the stage computes, a layer in the place of a stage: the backward pass in
// halves, then the forward pass of the next iteration.
func (p *Plan) Passes(layers int) []pipeline.Op {
	ops := make([]pipeline.Op, 0, 3*layers)
	for l := int32(layers) - 1; l >= 0; l-- {
		ops = append(ops, pipeline.Op{Kind: pipeline.Input, Stage: l})
		if l >= p.Reverse {
			ops = append(ops, pipeline.Op{Kind: pipeline.Weight, Stage: l})
		}
	}
	for l := range p.Reverse {
		ops = append(ops, pipeline.Op{Kind: pipeline.Weight, Stage: l})
	}
	for l := range int32(layers) {
		ops = append(ops, pipeline.Op{Kind: pipeline.Forward, Stage: l, Micro: 1})
	}
	return ops
}

// Check says why a plan is none for so many layers.
func (p *Plan) Check(layers int) pipeline.Why {
	left := layers
	for _, size := range p.Sizes {
		if size < 1 || int(size) > left {
			return whyf("messages of %v layers: expected each of one at least, and %d together", p.Sizes, layers)
		}
		left -= int(size)
	}
	if left > 0 || p.Reverse < 0 || int(p.Reverse) > layers {
		return whyf("messages of %v layers, %d of them reversed: expected %d together, and 0 to as many reversed", p.Sizes, p.Reverse, layers)
	}
	return ""
}
