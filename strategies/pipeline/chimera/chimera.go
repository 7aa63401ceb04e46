// Package chimera orders microbatches as Chimera does (Li and Hoefler, "Chimera: Efficiently
// Training Large-Scale Neural Networks with Bidirectional Pipelines", SC 2021;
// Shigangli/Chimera): a pipeline runs in each direction over the same ranks, each with half of
// the microbatches, so that one fills what the other leaves idle, and the weights still change
// once per iteration. MixPipe (Zhang et al., DAC 2023) makes the number of microbatches that
// begin at once a knob of the same two pipelines.
//
// More microbatches than ranks are units of as many, one behind the other. Where a backward
// pass takes longer than a forward pass, units fit each other badly; then forward passes may
// go in pairs. That is forward doubling and, where the job's microbatches are the halves of
// what it would run otherwise, backward halving.
//
// Left out: that the two passes of a pair send one message and use the device better than two;
// to recompute for the memory that doubling takes; more than two pipelines; and the sums of
// gradients over the two ranks of a stage, which no schedule here has.
package chimera

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what Chimera says about itself.
var Description = strategy.Description{
	Name: "chimera", System: "Chimera", Part: pipeline.SequencePart, Status: "after",
	Source: "Chimera (Li and Hoefler, SC 2021), Shigangli/Chimera",
	Idea:   "a pipeline in each direction over the same ranks: one fills what the other leaves idle",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks, strategy.Copies},
	Goal:   "throughput", Needs: "a layer profile, an even number of ranks", Live: pipeline.LiveCopies,
}

// The ways to have more microbatches than ranks.
const (
	Units = "units" // one behind the other
	Pairs = "pairs" // forward passes go two by two
)

// Config says how more microbatches than ranks follow each other.
type Config struct {
	Join string `yaml:"join" of:"units pairs"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Join: Units} }

// Ordering is Chimera.
type Ordering struct{ config Config }

var _ pipeline.Ordering = Ordering{}

// New returns the order; the configuration must be valid.
func New(c Config) Ordering { return Ordering{c} }

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (Ordering) Fixed() bool { return true }

// Schedule has route 0 go down the ranks and route 1 up.
func (o Ordering) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s, why := empty(ranks, microbatches)
	switch {
	case why != "":
	case o.config.Join == Pairs:
		why = pairs(&s)
	default:
		units(&s)
	}
	return s, why
}

// empty is a schedule of both directions without orders.
func empty(ranks, microbatches int) (pipeline.Schedule, pipeline.Why) {
	if ranks%2 != 0 {
		return pipeline.Schedule{}, pipeline.Why(fmt.Sprintf("%d ranks: pipelines in both directions need an even number", ranks))
	}
	return pipeline.NewSchedule(ranks, microbatches, pipeline.BothWays(ranks)...), ""
}

// pass is one of a rank at a time at which it has no other.
type pass struct {
	slot  int
	kind  string
	chunk pipeline.Chunk
}

// units writes the orders by slots in which one pass fits: microbatch k of a direction is
// forward on its i-th rank in slot 2k+i, and backward in slot 2k+2D-1-i; no two of a rank meet.
// A unit of D microbatches begins 2D slots after the one before.
func units(s *pipeline.Schedule) {
	ranks := len(s.Orders)
	for r := range ranks {
		var passes []pass
		for _, chunk := range s.Chunks(r) {
			for k := range (int(s.Microbatches) + ranks - 1) / ranks * ranks / 2 {
				begins := k/(ranks/2)*2*ranks + k%(ranks/2)*2
				passes = append(passes, pass{begins + int(chunk.Stage), "F", chunk}, pass{begins + 2*ranks - 1 - int(chunk.Stage), "B", chunk})
			}
		}
		slices.SortFunc(passes, func(a, b pass) int { return cmp.Compare(a.slot, b.slot) })
		line := s.Line(r)
		for _, p := range passes {
			line.Do(p.kind, p.chunk)
		}
	}
}

// pairs writes the orders by what comes first where a forward pass of two microbatches takes
// as long as a backward pass of one.
func pairs(s *pipeline.Schedule) pipeline.Why {
	c := pipeline.Like(s.Stages())
	most := int32(len(s.Orders))
	return s.List(&c, false, func(r *pipeline.Chooser, ready []pipeline.Choice) int {
		for i, x := range ready {
			if x.Kind == pipeline.Forward && r.Done(pipeline.Forward, x.Chunk)%2 == 1 {
				return i // the second of a pair
			}
		}
		return pipeline.Urgent(ready, func(c pipeline.Chunk) bool { return r.Keeps(c) < most })
	})
}
