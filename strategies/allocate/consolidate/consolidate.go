// Package consolidate keeps the workers of a gang together: on the tightest node
// that holds all of them, else on as few nodes as the free devices allow, of one
// rack where there is the choice. Work that talks much then talks within a node,
// and the largest gaps are left to those who need them.
package consolidate

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "consolidate", Part: allocate.PlacePart, Status: "after",
	Source: "folklore; the consolidation constraint of Tiresias (NSDI 2019) and Philly (ATC 2019), as a preference",
	Idea:   "a gang on the fewest nodes: the tightest that holds all of it, else the fullest-free of one rack",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// Placer is the strategy. Its fields are scratch.
type Placer struct {
	fewest fit.Fewest
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer.
func New() *Placer { return &Placer{} }

// Place takes the fewest nodes; a runner-up keeps off the first node of every better
// candidate. The score counts nodes first, racks second, both against it.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	return p.fewest.Candidates(v, need, k, into, func(found fit.Placement) int64 { return -int64(found.Nodes)<<32 - int64(found.Racks) })
}
