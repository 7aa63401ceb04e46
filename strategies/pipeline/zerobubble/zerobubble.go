// Package zerobubble orders microbatches with their backward passes in two halves (Qi et al.,
// "Zero Bubble Pipeline Parallelism", ICLR 2024; sail-sg/zero-bubble-pipeline-parallelism):
// the stage before waits only for the gradients of the inputs, so those of the weights fill
// what would be idle. H1 keeps as much memory as 1F1B, H2 twice as much and leaves hardly any
// bubble. The automatic order goes by what passes cost and by how much memory there is.
//
// H2 has no barrier at the optimiser's step in the paper, which checks the gradients' norm
// afterwards. That is left out: iterations here are one after the other. So is the integer
// program that polishes what the automatic order finds.
package zerobubble

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// H1Description is what H1 says about itself.
var H1Description = strategy.Description{
	Name: "zb-h1", System: "Zero Bubble", Part: pipeline.SequencePart, Status: "read",
	Source: "Zero Bubble (Qi et al., ICLR 2024)",
	Idea:   "backward passes in halves, the gradients of weights where a rank would be idle; memory as for 1F1B",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// H2Description is what H2 says about itself.
var H2Description = strategy.Description{
	Name: "zb-h2", System: "Zero Bubble", Part: pipeline.SequencePart, Status: "after",
	Source: "Zero Bubble (Qi et al., ICLR 2024)",
	Idea:   "as zb-h1 with twice as many microbatches under way: hardly any bubble for twice the activations",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// H1 is the order that keeps the memory of 1F1B; it has nothing to configure.
type H1 struct{}

// H2 is the one that takes twice that; it has nothing to configure.
type H2 struct{}

var _, _ pipeline.Ordering = H1{}, H2{}

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (H1) Fixed() bool { return true }

// Schedule lets each rank be ahead as in 1F1B, and has rank r do gradients of weights from its
// r-th microbatch on.
func (H1) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	return straight(ranks, microbatches, func(line *pipeline.Line, mine pipeline.Chunk, r int) {
		for range ranks - 1 - r {
			line.Do("F", mine)
		}
		for k := range microbatches {
			line.Do("FI", mine)
			if k >= r {
				line.Do("W", mine)
			}
		}
	})
}

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (H2) Fixed() bool { return true }

// Schedule lets each rank be ahead twice as far.
func (H2) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	return straight(ranks, microbatches, func(line *pipeline.Line, mine pipeline.Chunk, r int) {
		for range 2*(ranks-1-r) + 1 {
			line.Do("F", mine)
		}
		for k := range microbatches {
			line.Do("I", mine)
			if k >= 2*r {
				line.Do("W", mine)
			}
			line.Do("F", mine)
		}
	})
}

// straight has each rank of a straight pipeline write its line, and end with the gradients of
// weights that are left.
func straight(ranks, microbatches int, write func(line *pipeline.Line, mine pipeline.Chunk, r int)) (pipeline.Schedule, pipeline.Why) {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	for r := range ranks {
		line, mine := s.Line(r), s.Chunks(r)[0]
		write(line, mine, r)
		for line.Do("W", mine) {
		}
	}
	return s, ""
}
