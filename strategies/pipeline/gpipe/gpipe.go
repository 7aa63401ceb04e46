// Package gpipe orders microbatches as GPipe does (Huang et al., "GPipe: Efficient
// Training of Giant Neural Networks using Pipeline Parallelism", NeurIPS 2019):
// every stage runs all forward passes, then all backward passes in the same
// order, and the weights change once per iteration. It is the null of this step.
//
// Left out: recomputing activations in the backward pass, which trades a forward
// pass for memory and is a property of the profile, not of the order.
package gpipe

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "gpipe", System: "GPipe", Part: pipeline.SequencePart, Status: "null",
	Source: "GPipe (Huang et al., NeurIPS 2019)",
	Idea:   "all forward passes, then all backward passes",
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Ordering is the order; it has nothing to configure.
type Ordering struct{}

var _ pipeline.Ordering = Ordering{}

// Schedule is the same for every rank.
func (Ordering) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	for r := range ranks {
		line, mine := s.Line(r), s.Chunks(r)[0]
		for line.Do("F", mine) {
		}
		for line.Do("B", mine) {
		}
	}
	return s, ""
}
