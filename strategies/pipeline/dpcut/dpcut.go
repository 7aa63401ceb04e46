// Package dpcut cuts a chain of layers by dynamic programming, as the planner of
// PipeDream does (Narayanan et al., "PipeDream: Generalized Pipeline Parallelism
// for DNN Training", SOSP 2019). In the steady state a pipeline is as fast as its
// slowest stage or link; the cut makes that as fast as can be, counting on a link
// the activations of a microbatch and the gradient that comes back. Of equally
// fast cuts it takes the one through which a microbatch travels fastest, which
// shortens the filling and draining of the pipeline.
//
// Left out: replicating a stage and the levels of a hierarchical network. Added:
// devices of different speed, and memory, which rules out stages that keep more
// than a device holds.
package dpcut

import (
	"fmt"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "dp-cut", System: "PipeDream", Part: pipeline.CutPart, Status: "read",
	Source: "PipeDream (Narayanan et al., SOSP 2019)",
	Idea:   "the cut whose slowest stage or link is fastest, by dynamic programming on the profile",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Partitioner is the cut; it has nothing to configure.
type Partitioner struct{}

var _ pipeline.Partitioner = Partitioner{}

// Cut makes the slowest stage or link as fast as can be, then the way through short.
func (Partitioner) Cut(layers []workload.Layer, stages int, p pipeline.Params) ([]int32, pipeline.Why) {
	if why := p.Check(layers, stages, stages); why != "" {
		return nil, why
	}
	c := newChain(layers, &p)
	search := pipeline.Chain{Layers: len(layers), Stage: c.stage, Link: c.enter}
	if p.Links == nil {
		search.Latency = 2 * p.Latency
	}
	cut := search.Slowest(stages)
	if cut.Cost == unit.Forever {
		return nil, pipeline.Why(fmt.Sprintf("no cut of %d layers into %d stages fits devices of %v: more stages or fewer microbatches in flight would help",
			len(layers), stages, p.Memory))
	}
	return cut.First, ""
}

// chain is the profile summed from the front, so that any stage costs two reads.
type chain struct {
	p                        *pipeline.Params
	forward, backward        []unit.Duration
	paramKiB, activationsKiB []int64
	link                     []unit.Duration // entering layer i and back, where links are alike
	outputKiB                []int64         // of the layer before, where they are not
}

func newChain(layers []workload.Layer, p *pipeline.Params) *chain {
	n := len(layers) + 1
	c := &chain{p: p, forward: make([]unit.Duration, n), backward: make([]unit.Duration, n),
		paramKiB: make([]int64, n), activationsKiB: make([]int64, n), link: make([]unit.Duration, n), outputKiB: make([]int64, n)}
	for i, l := range layers {
		c.forward[i+1] = c.forward[i] + l.Forward
		c.backward[i+1] = c.backward[i] + l.Backward
		c.paramKiB[i+1] = c.paramKiB[i] + l.ParamKiB
		c.activationsKiB[i+1] = c.activationsKiB[i] + l.ActivationKiB
		c.link[i+1], c.outputKiB[i+1] = 2*p.Transfer(l.OutputKiB), l.OutputKiB
	}
	return c
}

// enter is the time that a link between two stages takes for what enters a layer, and back.
func (c *chain) enter(from, place, layer int) unit.Duration {
	if c.p.Links == nil || from < 0 {
		return c.link[layer]
	}
	kib := c.outputKiB[layer]
	return c.p.Link(from, place).Takes(kib) + c.p.Link(place, from).Takes(kib)
}

// stage is the time of both passes through layers i..j-1 on a stage's device,
// or Forever if they do not fit there.
func (c *chain) stage(s, i, j int) unit.Duration {
	kib := c.p.PeakKiB(c.paramKiB[j]-c.paramKiB[i], c.activationsKiB[j]-c.activationsKiB[i], s)
	if limit := int64(c.p.Memory) << 10; limit > 0 && kib > limit {
		return unit.Forever
	}
	return c.p.Compute(c.forward[j]-c.forward[i], s) + c.p.Compute(c.backward[j]-c.backward[i], s)
}
