// Package varuna orders microbatches as Varuna does (Athlur et al., "Varuna: Scalable, Low-cost
// Training of Massive Deep Learning Models", EuroSys 2022; microsoft/varuna): a stage keeps of
// a forward pass only its input, and computes it again just before the backward pass. A rank
// that is free serves gradients of weights first, then those of inputs, and else a forward pass: it
// goes ahead as far as it can while the gradient of the next stage is late. The last stage
// does its backward pass at once, and computes nothing again.
//
// The planner beside the order is its search for the number of stages and the size of a microbatch,
// made anew whenever machines come or go (morph.go).
//
// Left out: to compute again while the gradient is still on its way.
package varuna

import (
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "varuna", System: "Varuna", Part: pipeline.SequencePart, Status: "after",
	Source: "Varuna (Athlur et al., EuroSys 2022), microsoft/varuna",
	Idea:   "backward passes first, forward ones computed again just before them: little memory, no wait for a late gradient",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Ordering is the order; it has nothing to configure.
type Ordering struct{}

var _ pipeline.Ordering = Ordering{}

// Schedule lists with first halves of backward passes that are as long as both: the forward
// pass that is computed again, and the gradients of the inputs.
func (Ordering) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	like := pipeline.Like(ranks)
	if c != nil {
		like = *c
		like.Stages = slices.Clone(c.Stages)
	}
	last := int32(ranks) - 1
	for i := range like.Stages[:last] {
		like.Stages[i].Input += like.Stages[i].Forward
	}
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	why := s.List(&like, true, func(r *pipeline.Chooser, ready []pipeline.Choice) int {
		if x := len(ready) - 1; ready[x].Kind == pipeline.Weight { // the last of a chunk
			return x
		}
		return pipeline.Urgent(ready, nil)
	})
	for r, order := range s.Orders {
		s.Orders[r] = nil
		for _, op := range order {
			if op.Kind == pipeline.Input && op.Stage < last {
				s.Orders[r] = append(s.Orders[r], pipeline.Op{Kind: pipeline.Recompute, Stage: op.Stage, Micro: op.Micro})
			}
			s.Orders[r] = append(s.Orders[r], op)
		}
	}
	return s, why
}
