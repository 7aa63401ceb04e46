// Package ptdp spreads a model as Megatron-LM's PTD-P does (Narayanan et al., "Efficient
// Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021): tensor
// parallelism stays inside a node, stages go over nodes, and the rest is copies; all sizes
// that divide are tried, and microbatches of all sizes, each plan simulated. Layers are
// computed again where they do not fit otherwise.
//
// Added: the layers are cut by time, not by number, the order is chosen too, and where there are several
// sites copies may stand apart, each at one.
package ptdp

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "ptd-p", System: "Megatron-LM", Part: parallel.PlannerPart, Status: "after",
	Source: "Megatron-LM PTD-P (Narayanan et al., SC 2021)",
	Idea:   "tensor parallelism inside a node, stages over nodes, copies outside: every size tried, the fastest by simulation",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: parallel.Live,
}

// Planner is the search; it has nothing to configure.
type Planner struct{}

var _ parallel.Planner = Planner{}

// Plans goes through the grid.
func (Planner) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	g := parallel.Grid{Sequences: l.Sequences}
	all, why := g.Search(x, l)
	return parallel.Pareto(all), why
}
