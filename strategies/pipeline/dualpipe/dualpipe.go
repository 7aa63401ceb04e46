// Package dualpipe orders microbatches as DualPipe does (DeepSeek-AI, "DeepSeek-V3 Technical
// Report", 2024; deepseek-ai/DualPipe): a pipeline runs in each direction over the same
// ranks, so that both ends always have work, and a forward pass of one direction runs at once
// with a backward pass of the other, whose communication it hides. DualPipeV is one half of
// it: the pipeline turns at the last rank and comes back, and no stage is kept twice.
//
// Left out: what a pass sends to its experts, which the profile's times include.
package dualpipe

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what DualPipe says about itself.
var Description = strategy.Description{
	Name: "dualpipe", System: "DualPipe", Part: pipeline.SequencePart, Status: "read",
	Source: "DeepSeek-V3 (DeepSeek-AI, 2024), deepseek-ai/DualPipe",
	Idea:   "a pipeline in each direction: forward passes of one run at once with backward passes of the other",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks, strategy.Halves, strategy.Copies},
	Goal:   "throughput", Needs: "a layer profile, as many stages as ranks, an even number", Live: pipeline.LiveCopies,
}

// VDescription is what DualPipeV says about itself.
var VDescription = strategy.Description{
	Name: "dualpipe-v", System: "DualPipe", Part: pipeline.SequencePart, Status: "read",
	Source: "DualPipeV (Sea AI Lab and DeepSeek-AI, 2025), deepseek-ai/DualPipe",
	Idea:   "DualPipe's order on a pipeline that turns at the last rank: each stage once",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile of two stages a rank", Live: pipeline.Live,
}

// Both is DualPipe; it has nothing to configure.
type Both struct{}

// V is DualPipeV; it has nothing to configure.
type V struct{}

var _, _ pipeline.Ordering = Both{}, V{}

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (Both) Fixed() bool { return true }

// Schedule has route 0 go down the ranks and route 1 up.
func (Both) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	if ranks%2 != 0 || microbatches%2 != 0 || microbatches < 2*ranks {
		return pipeline.Schedule{}, pipeline.Why(fmt.Sprintf("%d ranks and %d microbatches: DualPipe needs even numbers of both, and twice as many microbatches as ranks", ranks, microbatches))
	}
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.BothWays(ranks)...)
	for r := range ranks {
		mine := s.Chunks(r)
		if r >= ranks/2 {
			slices.Reverse(mine)
		}
		write(s.Line(r), mine[0], mine[1], min(r, ranks-1-r), ranks/2, microbatches/2)
	}
	return s, ""
}

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (V) Fixed() bool { return true }

// Schedule has stage s on rank s, and on the way back.
func (V) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	if microbatches < 2*ranks {
		return pipeline.Schedule{}, pipeline.Why(fmt.Sprintf("%d ranks and %d microbatches: DualPipeV needs twice as many microbatches as ranks", ranks, microbatches))
	}
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Folded(ranks, 2*ranks, true))
	for r := range ranks {
		mine := s.Chunks(r)
		write(s.Line(r), mine[0], mine[1], r, ranks, microbatches)
	}
	return s, ""
}

// write is the eight steps of a rank that stands q from its end of a half of h ranks. Chunk a
// begins, b comes later; each has m microbatches.
func write(line *pipeline.Line, a, b pipeline.Chunk, q, h, m int) {
	inner := h - q - 1
	for range 2 * inner {
		line.Do("F", a)
	}
	for range q + 1 {
		line.Do("F", a)
		line.Do("F", b)
	}
	for range inner {
		line.Do("IWF", b)
	}
	for i := range m - 2*h + q + 1 {
		if i == 0 && inner == 0 { // its next would be too late
			line.Do("F", a)
			line.Do("B", b)
		} else {
			line.Pair("F", a, "B", b)
		}
		line.Pair("F", b, "B", a)
	}
	for range inner {
		line.Do("B", b)
		line.Pair("F", b, "B", a)
	}
	var waiting []pipeline.Chunk // whose gradients of weights are left, oldest first
	halve := false
	backward := func(c pipeline.Chunk) {
		if !halve {
			line.Do("B", c)
			return
		}
		line.Do("I", c)
		waiting = append(waiting, c)
	}
	weights := func() {
		line.Do("W", waiting[0])
		waiting = waiting[1:]
	}
	for i := range q + 1 {
		halve = halve || i == (q+1)/2 && q%2 == 1
		backward(b)
		halve = halve || i == (q+1)/2
		backward(a)
	}
	for range inner {
		weights()
		backward(a)
	}
	for len(waiting) > 0 {
		weights()
	}
}
