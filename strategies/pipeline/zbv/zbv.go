// Package zbv orders microbatches on a pipeline that turns at the last rank and comes back, with
// backward passes in two halves, so that a rank holds the two stages whose activations are kept
// longest and shortest, together (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR
// 2024, and "Pipeline Parallelism with Controllable Memory", NeurIPS 2024;
// sail-sg/zero-bubble-pipeline-parallelism). ZBV has no bubble where all passes take equally long.
// V-Half and V-Min repeat a block that keeps activations half and a third as long.
//
// Their last step re-orders both ends of an iteration where that takes no more memory.
//
// Left out: the greedy search on the same pipeline from measured costs.
package zbv

import (
	"strings"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what ZBV says about itself.
var Description = strategy.Description{
	Name: "zbv", System: "Zero Bubble", Part: pipeline.SequencePart, Status: "read",
	Source: "Zero Bubble (Qi et al., ICLR 2024), sail-sg/zero-bubble-pipeline-parallelism, PyTorch ScheduleZBVZeroBubble",
	Idea:   "a pipeline that turns at the last rank, backward passes in halves: no bubble where all passes take equally long, memory as for 1F1B",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile of two stages a rank", Live: pipeline.Live,
}

// HalfDescription is what V-Half says about itself.
var HalfDescription = strategy.Description{
	Name: "v-half", System: "Zero Bubble", Part: pipeline.SequencePart, Status: "after",
	Source: "Pipeline Parallelism with Controllable Memory (Qi et al., NeurIPS 2024), sail-sg/zero-bubble-pipeline-parallelism",
	Idea:   "a block of passes repeated for each microbatch, so that activations are kept half as long as under zbv",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile of two stages a rank", Live: pipeline.Live,
}

// MinDescription is what V-Min says about itself.
var MinDescription = strategy.Description{
	Name: "v-min", System: "Zero Bubble", Part: pipeline.SequencePart, Status: "after",
	Source: "Pipeline Parallelism with Controllable Memory (Qi et al., NeurIPS 2024), sail-sg/zero-bubble-pipeline-parallelism",
	Idea:   "as v-half with the least memory that a repeated block allows: a third of zbv's",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile of two stages a rank", Live: pipeline.Live,
}

// V is ZBV; it has nothing to configure.
type V struct{}

// Blocks repeats a block of passes; it has nothing to configure.
type Blocks struct {
	// block says in which slots rank r of p does the pass forward on the way down and up, and
	// the gradients of inputs on the way up and down, of the first microbatch.
	block func(p, r int) [4]int
}

// Half is V-Half.
var Half = Blocks{func(p, r int) [4]int {
	shift := 3 * (1 - p%2)
	return [4]int{2 * r, 3*p - r - 2, 3*p + shift + 2*r - 1, 6*p + shift - r - 2}
}}

// Min is V-Min.
var Min = Blocks{func(p, r int) [4]int {
	shift := 0
	if p%3 == 0 {
		shift = 2
	}
	return [4]int{r, 2*p - r - 1, 2*p + shift + r, 4*p + shift - r - 1}
}}

var _, _ pipeline.Ordering = V{}, Blocks{}

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (V) Fixed() bool { return true }

// Schedule has rank r fill the way down, alternate, and leave gradients of weights for the
// end. What it would do with microbatches that are not there is left out.
func (V) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	return turning(ranks, microbatches, func(line *pipeline.Line, down, up pipeline.Chunk, r int) {
		for _, phase := range []struct {
			times  int
			passes string // small letters are those of the way up
		}{{2*(ranks-r) - 1, "F"}, {r, "fF"}, {ranks - r, "fiw"}, {max(2*ranks-1, microbatches) - ranks, "FIWfiw"}, {r, "Ii"}, {ranks - r, "IW"}} {
			for range phase.times {
				for _, letter := range phase.passes {
					if pass := strings.ToUpper(string(letter)); pass == string(letter) {
						line.Do(pass, down)
					} else {
						line.Do(pass, up)
					}
				}
			}
		}
	})
}

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (Blocks) Fixed() bool { return true }

// Schedule repeats the block every six slots, one microbatch after the other, and re-orders both ends.
// Gradients of weights take the first slot that is free then: they count in the first round, which
// moves both ends, and are placed anew after the second, which moves the end alone, as published.
func (b Blocks) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	g := newGrid(ranks, microbatches, b.block)
	g.weigh()
	g.hasten(true)
	g.squeeze()
	g.hasten(false)
	g.weigh()
	g.squeeze()
	g.weigh()
	return turning(ranks, microbatches, func(line *pipeline.Line, way, back pipeline.Chunk, r int) {
		var waiting []pipeline.Chunk // whose gradients of weights are due, oldest first
		for _, c := range g.rows[r] {
			switch {
			case c.is(down):
				line.Do("F", way)
			case c.is(up):
				line.Do("F", back)
			case c.is(backUp):
				line.Do("I", back)
				waiting = append(waiting, back)
			case c.is(backDown):
				line.Do("I", way)
				waiting = append(waiting, way)
			case c.is(weights):
				line.Do("W", waiting[0])
				waiting = waiting[1:]
			}
		}
	})
}

// turning has each rank of a pipeline that goes down the ranks and up again write its line,
// and end with the gradients of weights that are left, first those of the way up.
func turning(ranks, microbatches int, write func(line *pipeline.Line, down, up pipeline.Chunk, r int)) (pipeline.Schedule, pipeline.Why) {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Folded(ranks, 2*ranks, true))
	for r := range ranks {
		line, mine := s.Line(r), s.Chunks(r)
		write(line, mine[0], mine[1], r)
		for line.Do("W", mine[1]) || line.Do("W", mine[0]) {
		}
	}
	return s, ""
}
