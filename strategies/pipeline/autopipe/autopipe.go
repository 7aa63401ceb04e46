// Package autopipe cuts a pipeline as AutoPipe does (Liu et al., "AutoPipe: A Fast Pipeline
// Parallelism Approach with Balanced Partitioning and Micro-batch Slicing", CLUSTER 2022). It
// begins with the cut whose slowest stage is fastest, and simulates it. The stage on which most
// of the critical path lies is the master; one or two layers at its borders change sides, the stages
// before and behind it are balanced anew or not, and what is faster by simulation is kept, until no move
// helps.
//
// Layers are as fine as the profile has them: whoever profiles halves of a block has it cut
// there. The moves are recalled, not read. Added: layers also come to the master, and where it
// has no move that helps, the other stages are tried, those with more of the critical path first.
// Tensor and data parallelism are searched as PTD-P does it. Where a rank holds several stages, or
// a sequence itself tries many orders, the cut is the one that the search begins with.
//
// Its slicer is a sequence of its own, 1f1b-sliced: the cut is then made for whole passes, and what
// comes of it is sliced.
package autopipe

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "autopipe", System: "AutoPipe", Part: parallel.PlannerPart, Status: "after",
	Source: "AutoPipe (Liu et al., CLUSTER 2022; abstract, the moves recalled)",
	Idea:   "from the cut whose slowest stage is fastest, layers leave the stage on the critical path as long as the simulated pipeline gains",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: parallel.Live,
}

// Planner is the search; it has nothing to configure.
type Planner struct{}

var _ parallel.Planner = Planner{}

// Plans cuts each shape of the grid.
func (Planner) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	g := parallel.Grid{Sequences: l.Sequences, Make: func(s *parallel.Shape) ([]parallel.Candidate, parallel.Why) {
		return improve(x, s)
	}}
	all, why := g.Search(x, l)
	return parallel.Pareto(all), why
}

// improve moves layers of one shape.
func improve(x *parallel.Simulator, s *parallel.Shape) ([]parallel.Candidate, parallel.Why) {
	chain, why := x.Chain(s)
	if why != "" {
		return nil, why
	}
	shape := *s
	shape.Cuts, shape.Sequence = seed(chain, s), whole(s.Sequence)
	best, why := x.Candidates(shape.Plan())
	if _, tries := shape.Sequence.Order.(parallel.Trier); why != "" || tries || len(s.Cuts) != s.Ranks-1 {
		return best, why // moves are simulated by the hundred: elsewhere they would take minutes
	}
	// Each round looks at all moves of one stage and takes the best of them. It ends, since every
	// round but the last makes the step shorter.
	for gained := true; gained; {
		gained = false
		for _, stage := range inTurn(best[0].Result.Parts[0]) {
			for _, cuts := range moves(chain, shape.Cuts, stage) {
				// No order of passes is faster than its slowest stage is with all microbatches, so
				// that most moves away from balance need no simulation.
				if slowest(chain, cuts) >= best[0].Result.Step/unit.Duration(s.Microbatches) {
					continue
				}
				try := shape
				try.Cuts = cuts
				if c, why := x.Candidates(try.Plan()); why == "" && c[0].Result.Step < best[0].Result.Step {
					best, shape, gained = c, try, true
				}
			}
			if gained {
				break // there may be another master now
			}
		}
	}
	if shape.Sequence.Name == s.Sequence.Name {
		return best, ""
	}
	shape.Sequence = s.Sequence
	return x.Candidates(shape.Plan())
}

// seed is the cut whose slowest stage is fastest, of those that fit.
func seed(c *pipeline.Chain, s *parallel.Shape) []int32 {
	if cut := c.Slowest(len(s.Cuts) + 1); cut.Cost != unit.Forever {
		return cut.First
	}
	return s.Cuts // the simulation says what does not fit
}

// moves are the cuts in which layers at the borders of a stage have changed sides, with and
// without new balance before the stage and behind it.
func moves(c *pipeline.Chain, cuts []int32, stage int) (all [][]int32) {
	steps := []int32{-2, -1, 0, 1, 2}
	for _, first := range steps {
		for _, end := range steps {
			if first == 0 && end == 0 || stage == 0 && first != 0 || stage == len(cuts) && end != 0 {
				continue
			}
			moved := slices.Clone(cuts)
			if stage > 0 {
				moved[stage-1] += first
			}
			if stage < len(cuts) {
				moved[stage] += end
			}
			if !slices.IsSorted(append([]int32{1}, append(moved, int32(c.Layers-1))...)) {
				continue
			}
			before, behind := balance(c, moved, 0, stage), balance(c, moved, stage+1, len(cuts)+1)
			all = append(all, moved, before, behind, slices.Concat(before[:stage], behind[stage:]))
		}
	}
	return all
}

// balance cuts the layers of the stages from one to before another anew, so that the slowest of
// them is as fast as can be.
func balance(c *pipeline.Chain, cuts []int32, from, to int) []int32 {
	ends := slices.Concat([]int32{0}, cuts, []int32{int32(c.Layers)})
	if to-from < 2 {
		return cuts
	}
	first := int(ends[from])
	part := pipeline.Chain{Layers: int(ends[to]) - first, Link: c.Link,
		Stage: func(stage, i, j int) unit.Duration { return c.Stage(from+stage, first+i, first+j) }}
	anew := slices.Clone(cuts)
	for i, cut := range part.Slowest(to - from).First {
		anew[from+i] = int32(first) + cut
	}
	return anew
}

// slowest is the time of the slowest stage, Forever where a stage cannot be.
func slowest(c *pipeline.Chain, cuts []int32) (most unit.Duration) {
	first := 0
	for stage, end := range append(slices.Clone(cuts), int32(c.Layers)) {
		if int(end) <= first {
			return unit.Forever
		}
		most, first = max(most, c.Stage(stage, first, int(end))), int(end)
	}
	return most
}

// inTurn are the stages by how much of the critical path lies on them, the master first.
func inTurn(p *parallel.Part) []int {
	on, stages := make([]unit.Duration, p.Schedule.Stages()), make([]int, p.Schedule.Stages())
	for i := range stages {
		stages[i] = i
	}
	for _, at := range p.Timing.Critical {
		span, op := p.Timing.Spans[at.Rank][at.At], p.Schedule.Orders[at.Rank][at.At]
		on[op.Stage] += span.End.Sub(span.Start)
	}
	slices.SortStableFunc(stages, func(a, b int) int { return cmp.Compare(on[b], on[a]) })
	return stages
}
