package varuna

import (
	"cmp"
	"sort"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline/parallel"
)

// MorphDescription is what the planner says about itself.
var MorphDescription = strategy.Description{
	Name: "varuna-morph", System: "Varuna", Part: parallel.PlannerPart, Status: "after",
	Source: "Varuna (Athlur et al., EuroSys 2022), microsoft/varuna",
	Idea:   "any number of stages that divides the layers, the largest microbatch that fits, the rest copies: chosen anew by simulation whenever machines come or go",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: parallel.LiveRecovery,
}

// Morph is Varuna's AutoConfig, and what it does when machines come or go; it has nothing to
// configure. Each stage stands on one device, as Varuna splits no layer. The batch is that of the
// model whatever the devices: where the copies do not divide its microbatches some take one more,
// and devices that make up no whole copy are idle.
type Morph struct{}

var _ parallel.Recoverer = Morph{}

// Plans simulates, for each number of stages that divides the layers, the largest microbatch that
// fits. A smaller one fills the pipeline better, but its products are too small for a device to
// be fast, which a profile of layers may not say: so the authors do not look at any.
func (Morph) Plans(x *parallel.Simulator, l parallel.Limits) (all []parallel.Candidate, why parallel.Why) {
	g := newGrid(x, l)
	for _, q := range l.Sequences {
		for way := range g.ways {
			for _, stages := range g.stages {
				c, not := g.largest(q, int8(way), stages)
				if not != "" {
					why = cmp.Or(why, not)
					continue
				}
				all = append(all, c)
			}
		}
	}
	if len(all) > 0 {
		return parallel.Pareto(all), ""
	}
	return nil, why
}

// grid is the plans that are looked at. It is small, a few numbers of stages and ways, because only
// one size of microbatch is looked at for each: so the search can be made whenever a machine goes.
type grid struct {
	x       *parallel.Simulator
	devices int
	stages  []int // numbers of them that divide the layers between the ends
	sizes   []int // of microbatches that divide the batch
	ways    int   // to run all layers
	ends    [2]int
}

func newGrid(x *parallel.Simulator, l parallel.Limits) *grid {
	g := &grid{x: x, devices: x.On.Len(), ends: ends(x), ways: 1}
	if l.Devices > 0 {
		g.devices = min(g.devices, l.Devices)
	}
	if l.Stages {
		g.stages, g.sizes = []int{g.devices}, []int{1}
		return g
	}
	if all, why := x.Ways(x.Model.Profile.Layers()/2, 0, 1, 1); why == "" {
		g.ways = len(all)
	}
	for n := 1; n <= min(g.devices, g.ends[1]-g.ends[0]); n++ {
		if (g.ends[1]-g.ends[0])%n == 0 {
			g.stages = append(g.stages, n)
		}
	}
	for n := 1; n <= x.Model.Batch; n++ {
		if x.Model.Batch%n == 0 && (l.Samples == 0 || n <= l.Samples) {
			g.sizes = append(g.sizes, n)
		}
	}
	return g
}

// Published cuts stand between blocks: Varuna's users mark them in the code of a model, and every block
// has one. Here a block is whatever has the same costs as its neighbours.

// ends are the first of the layers that are alike, and the one after the last: an embedding before
// them and a head behind stand with their neighbours, and are not counted.
func ends(x *parallel.Simulator) [2]int {
	n := x.Model.Profile.Layers()
	like := func(i, j int) bool {
		a, not := x.Layer(i, 0, 1, 1, nil)
		b, why := x.Layer(j, 0, 1, 1, nil)
		return not == "" && why == "" && *a == *b
	}
	all := [2]int{0, n}
	if n > 3 && like(1, 2) && !like(0, 1) {
		all[0] = 1
	}
	if n > 3 && like(n-3, n-2) && !like(n-2, n-1) {
		all[1] = n - 1
	}
	return all
}

// largest is the plan of so many stages with the largest microbatch that fits, by halving the
// sizes: where one does not fit, no larger one does.
func (g *grid) largest(q parallel.Sequence, way int8, stages int) (best parallel.Candidate, why parallel.Why) {
	sort.Search(len(g.sizes), func(i int) bool {
		c, not := g.config(q, way, stages, g.sizes[i])
		if not != "" {
			why = cmp.Or(why, not)
			return true
		}
		best = c
		return false
	})
	if best.Plan.Samples > 0 {
		why = ""
	}
	return best, why
}

// config simulates one place on the grid. Copies beyond one for each microbatch would have nothing to
// do. Its stages have as many of the layers each.
func (g *grid) config(q parallel.Sequence, way int8, stages, samples int) (c parallel.Candidate, why parallel.Why) {
	micros := g.x.Model.Batch / samples
	copies := min(g.devices/stages, micros)
	s := parallel.Shape{Sequence: q, Samples: samples, Microbatches: micros / copies, Tensor: 1, Ranks: stages, Copies: copies, Ways: g.x.AllIn(way, 1)}
	for i := 1; i < stages; i++ {
		s.Cuts = append(s.Cuts, int32(g.ends[0]+i*(g.ends[1]-g.ends[0])/stages))
	}
	// A batch that changed with the machines would be another training: steps would mean
	// something else from then on.
	c.Plan = s.Plan()
	for i := range micros % copies { // the batch is kept
		c.Plan.Pipelines[i].Microbatches++
	}
	c.Result, why = g.x.Simulate(&c.Plan)
	return c, why
}

// Recover morphs: whatever stood where, nothing of it is used, as a layer may be on any device in the
// new plan. It plans for the devices that are left, and goes on from the last checkpoint.
func (m Morph) Recover(x *parallel.Simulator, _ *parallel.Plan, lost []int32, l parallel.Limits) (parallel.Recovery, parallel.Why) {
	return parallel.Restart(x, m, lost, l)
}
