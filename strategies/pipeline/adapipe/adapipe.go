// Package adapipe decides stage by stage what is computed again, as AdaPipe does (Sun et al.,
// "AdaPipe: Optimizing Pipeline Parallelism with Adaptive Recomputation and Partitioning", ASPLOS
// 2024). Under 1F1B the first stages keep the activations of more microbatches than the last, so
// that they have to compute more again. For all layers that a stage could hold, a knapsack finds
// the ways to run them that take least time and fit beside the weights; a dynamic program over the
// stages ranks the cuts by a closed form, and those that could be best are simulated.
//
// The closed form is a lower bound of a step under 1F1B, exact in half of all cases. Where there
// are fewer microbatches than stages, a plainer bound takes its place; under other orders it ranks
// and bounds nothing. Sizes of tensor, pipeline and data parallelism are searched as PTD-P does it.
//
// The recurrences are recalled, not read. Layers are as fine as the profile has them, and so are
// the choices: a profile names the ways to run a layer, not its operations.
package adapipe

import (
	"fmt"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "adapipe", System: "AdaPipe", Part: parallel.PlannerPart, Status: "after",
	Source: "AdaPipe (Sun et al., ASPLOS 2024; abstract, recurrences recalled)",
	Idea:   "each stage computes again as much as its memory asks for, and layers are cut by what that costs",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: parallel.Live,
}

// Planner is the search; it has nothing to configure.
type Planner struct{}

var _ parallel.Planner = Planner{}

// dearest is how much faster a step can be that computes nothing again than one that computes all
// again: a backward pass takes twice a forward one.
const dearest = 1. / 3

// Plans cuts each shape of the grid.
func (Planner) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	g := parallel.Grid{Sequences: l.Sequences, Gain: dearest, Mixed: true, Make: func(s *parallel.Shape) ([]parallel.Candidate, parallel.Why) {
		return adapt(x, s, l.Stages)
	}}
	all, why := g.Search(x, l)
	return parallel.Pareto(all), why
}

// adapt finds the cut of a shape, and the ways to run its layers; only the fastest where all
// activations are kept.
func adapt(x *parallel.Simulator, s *parallel.Shape, keep bool) (best []parallel.Candidate, why parallel.Why) {
	if len(s.Cuts) != s.Ranks-1 {
		return nil, parallel.Why(fmt.Sprintf("%s has %d stages on %d ranks: expected one on each", s.Sequence.Name, len(s.Cuts)+1, s.Ranks))
	}
	c, why := newChoice(x, s, keep)
	if why != "" {
		return nil, why
	}
	why = parallel.Why(fmt.Sprintf("no cut of %d layers into %d stages fits, whatever is computed again: more stages or smaller microbatches would help", len(c.layers[0]), s.Ranks))
	for _, f := range c.cuts(s.Microbatches) {
		if len(best) > 0 && f.step >= best[0].Result.Step {
			break // they ascend, and no step is shorter
		}
		shape := *s
		shape.Cuts, shape.Ways = f.first[1:], c.ways(f.first)
		some, not := x.Candidates(shape.Plan())
		switch {
		case not != "":
			why = not
		case len(best) == 0 || some[0].Result.Step < best[0].Result.Step:
			best = some
		}
	}
	if len(best) > 0 {
		why = ""
	}
	return best, why
}

// cost is that of a stage: its passes forward and backward.
type cost struct{ forward, backward unit.Duration }

func (c cost) both() unit.Duration { return c.forward + c.backward }

// form is the closed form of a stage and all behind it: until the first backward pass begins, from
// the last but one for each stage behind on, and the slowest stage; with the first layers of
// the stages.
type form struct {
	warm, cool, slowest unit.Duration
	stage               cost
	step                unit.Duration
	first               []int32
}

// before is the form with one more stage, which has so many stages behind it.
func (f *form) before(c cost, first int32, behind, microbatches, stages int) form {
	n := form{stage: c, slowest: max(f.slowest, c.both()), first: append([]int32{first}, f.first...)}
	if microbatches < stages { // a stage does all of its work once the first microbatch has come
		n.warm = max(unit.Duration(microbatches)*c.both(), c.both()+f.warm)
		n.step = n.warm
		return n
	}
	ahead := unit.Duration(behind)
	n.warm = c.forward + max(f.warm+f.stage.backward, ahead*c.forward)
	n.cool = c.backward + max(f.cool+f.stage.forward, ahead*c.backward)
	n.step = n.warm + n.cool + unit.Duration(microbatches-stages)*n.slowest
	return n
}
