// Package firstfit places a gang on the first nodes, by id, that have room: the
// null of step 2. It looks at nothing else.
package firstfit

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "first-fit", Part: allocate.PlacePart, Status: "null",
	Source: "folklore", Idea: "the first nodes, by id, that have room",
	Goal: "throughput", Needs: "nothing", Live: "as simulated",
}

// Placer is the strategy.
type Placer struct{}

var _ allocate.Placer = Placer{}

// Place walks the nodes in order of their ids; the runner-up starts behind the
// first node of the best.
func (Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	from := plan.NodeID(0)
	for range k {
		into = allocate.Extend(into)
		c := &into[len(into)-1]
		slots, ok := fit.First(v, need, from, c.Slots)
		if !ok {
			return into[:len(into)-1]
		}
		c.Slots, c.Score = slots, -int64(slots[0].Node)
		from = slots[0].Node + 1
	}
	return into
}
