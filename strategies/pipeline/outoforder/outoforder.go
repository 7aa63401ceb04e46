// Package outoforder delays gradients of weights, as OOO BackProp does (Oh et al., "Out-of-Order
// BackProp: An Effective Scheduling Technique for Deep Neural Networks", EuroSys 2022;
// mlsys-seo/ooo-backprop): nobody waits for them, so a stage first hands on the gradients of
// its inputs (gradient fast-forwarding) and does those of its weights while it would be idle.
// How many microbatches may wait for theirs is searched, within the memory that there is.
//
// Where a stage has replicas, the order of the layers within it matters too: reverse first-k
// sends the gradients of the first layers in the order in which the next forward pass wants them.
//
// Left out: layers that go round the devices one by one, which is the fold of an interleaved
// pipeline; and a second stream of a GPU.
package outoforder

import (
	"math/bits"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "ooo-backprop", System: "OOO BackProp", Part: pipeline.SequencePart, Status: "after",
	Source: "OOO BackProp (Oh et al., EuroSys 2022), mlsys-seo/ooo-backprop",
	Idea:   "1F1B that hands gradients on first, and does those of weights while it would be idle",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Ordering is the order; it has nothing to configure.
type Ordering struct{}

var _ pipeline.Ordering = Ordering{}

// Tries is how many orders Schedule simulates.
func (Ordering) Tries(_, microbatches int) int { return 2 + bits.Len(uint(microbatches)) }

// Schedule keeps the best of 1F1B in halves and of orders in which more and more microbatches
// wait. Without costs it is the former.
func (Ordering) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	first := inOrder(ranks, microbatches)
	if c == nil {
		return first, ""
	}
	search := pipeline.Search{Costs: c}
	why := search.Try(first, "")
	for wait := 1; wait < 2*microbatches && why == ""; wait *= 2 {
		why = search.Try(delayed(ranks, microbatches, wait, c))
	}
	return search.Best, why
}

// inOrder is 1F1B, each half of a backward pass behind the other.
func inOrder(ranks, microbatches int) pipeline.Schedule {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	for r := range ranks {
		line, mine := s.Line(r), s.Chunks(r)[0]
		for range ranks - 1 - r {
			line.Do("F", mine)
		}
		for range microbatches {
			line.Do("FIW", mine)
		}
	}
	return s
}

// delayed lets so many microbatches wait, and keeps the activations of as many others as 1F1B
// does.
func delayed(ranks, microbatches, wait int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	return s, s.List(c, true, func(r *pipeline.Chooser, ready []pipeline.Choice) int {
		mine := ready[0].Chunk
		if r.Done(pipeline.Input, mine)-r.Done(pipeline.Weight, mine) > int32(wait) {
			return len(ready) - 1 // gradients of weights are the last of a chunk
		}
		return pipeline.Urgent(ready, func(pipeline.Chunk) bool { return r.Keeps(mine) < int32(ranks-r.Rank) })
	})
}
