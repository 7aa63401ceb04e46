// Package alpa cuts a pipeline by the form of Alpa's planner (Zheng et al., "Alpa: Automating
// Inter- and Intra-Operator Parallelism for Distributed Deep Learning", OSDI 2022): what the
// stages take together, and m-1 times what the slowest takes. For each time that the slowest may
// take, a dynamic program finds the stages that take least together. A stage runs its layers in
// the fastest way that fits with what it keeps in flight.
//
// It is a baseline: of a step under 1F1B the form is an upper bound, of one under GPipe a lower
// one. The simulation says what a plan takes, and chooses the sizes of tensor, pipeline and data
// parallelism.
//
// Left out: stages on unlike numbers of devices, and the program that splits the operations
// within a stage; a profile says what its ways cost.
package alpa

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "alpa", System: "Alpa", Part: parallel.PlannerPart, Status: "after",
	Source: "Alpa (Zheng et al., OSDI 2022), alpa-projects/alpa",
	Idea:   "the stages that take least together and m-1 times the slowest, a dynamic program for each time of the slowest",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: parallel.Live,
}

// Planner is the search; it has nothing to configure.
type Planner struct{}

var _ parallel.Planner = Planner{}

// Plans cuts each shape of the grid.
func (Planner) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	g := parallel.Grid{Sequences: l.Sequences, Mixed: true, Make: func(s *parallel.Shape) ([]parallel.Candidate, parallel.Why) {
		shape, _, why := cut(x, s, l.Stages)
		if why != "" {
			return nil, why
		}
		return x.Candidates(shape.Plan())
	}}
	all, why := g.Search(x, l)
	return parallel.Pareto(all), why
}

// cut cuts a shape, and tells what the form says of it.
func cut(x *parallel.Simulator, s *parallel.Shape, keep bool) (shape parallel.Shape, cost unit.Duration, why parallel.Why) {
	if len(s.Cuts) != s.Ranks-1 {
		return shape, 0, parallel.Why(fmt.Sprintf("%s has %d stages on %d ranks: the form is of one stage on each", s.Sequence.Name, len(s.Cuts)+1, s.Ranks))
	}
	shape = *s
	ways, why := fastest(x, shape, keep)
	if why != "" {
		return shape, 0, why
	}
	chain := *ways[0].chain
	chain.Stage = func(stage, first, end int) unit.Duration {
		_, took := pick(ways, stage, first, end)
		return took
	}
	if shape.Cuts, cost = least(&chain, s.Ranks, s.Microbatches); cost == unit.Forever {
		return shape, cost, parallel.Why(fmt.Sprintf("no cut of %d layers into %d stages fits: more stages or smaller microbatches would help", chain.Layers, s.Ranks))
	}
	shape.Ways = make([]int8, chain.Layers)
	first := 0
	for stage, end := range append(slices.Clone(shape.Cuts), int32(chain.Layers)) {
		if way, _ := pick(ways, stage, first, int(end)); way > 0 {
			copy(shape.Ways[first:end], ways[way].of[first:end])
		}
		first = int(end)
	}
	return shape, cost, ""
}

// way is all layers run in one way.
type way struct {
	of    []int8
	chain *pipeline.Chain
}

// fastest are the ways from the fastest on, only that one where all activations are kept.
func fastest(x *parallel.Simulator, s parallel.Shape, keep bool) (all []way, why parallel.Why) {
	choice, why := x.Ways(x.Model.Profile.Layers()/2, 0, s.Tensor, s.Samples)
	if keep && why == "" {
		choice = choice[:1]
	}
	for w := range choice {
		s.Ways = x.AllIn(int8(w), s.Tensor)
		chain, why := x.Chain(&s)
		if why != "" {
			return nil, why
		}
		all = append(all, way{s.Ways, chain})
	}
	return all, why
}

// pick is the way in which a stage is fastest, and its time; Forever where none fits.
func pick(ways []way, stage, first, end int) (best int, took unit.Duration) {
	took = unit.Forever
	for w := range ways {
		if d := ways[w].chain.Stage(stage, first, end); d < took {
			best, took = w, d
		}
	}
	return best, took
}

// least is the cut of which the form is least, and what it says.
func least(c *pipeline.Chain, stages, microbatches int) (cuts []int32, cost unit.Duration) {
	add := func(before, stage, _ unit.Duration) unit.Duration { return before + stage }
	together := c.Search(stages, unit.Forever, add).Cost // that of any limit is no less
	if cost = unit.Forever; together == unit.Forever {
		return nil, cost
	}
	// The slowest stage of a cut takes as long as some stage can, so that no other limits have to
	// be tried. They ascend, and stop where even the stages that take least together would not help.
	var limits []unit.Duration
	for stage := range stages {
		for first := stage; first < c.Layers; first++ {
			for end := first + 1; end <= c.Layers; end++ {
				limits = append(limits, c.Stage(stage, first, end))
			}
		}
	}
	slices.Sort(limits)
	slowest := c.Slowest(stages).Cost
	for _, limit := range slices.Compact(limits) {
		rest := unit.Duration(microbatches-1) * limit
		if limit < slowest || limit == unit.Forever {
			continue
		}
		if together+rest >= cost {
			break
		}
		if found := c.Search(stages, limit, add); found.Cost+rest < cost {
			cuts, cost = found.First, found.Cost+rest
		}
	}
	return cuts, cost
}
