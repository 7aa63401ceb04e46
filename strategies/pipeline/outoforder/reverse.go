package outoforder

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
)

// ReverseDescription is what reverse first-k says about itself.
var ReverseDescription = strategy.Description{
	Name: "reverse-first-k", System: "OOO BackProp", Part: overlap.GradientsPart, Status: "read",
	Source: "OOO BackProp (Oh et al., EuroSys 2022), mlsys-seo/ooo-backprop",
	Idea:   "gradients of the first layers' weights come last, the first layer's first, and each layer waits for its own",
	Goal:   "throughput", Needs: "a layer profile", Live: overlap.Live,
}

// Reverse is reverse first-k. A message has the gradients of one layer, and goes when they are
// computed.
type Reverse struct{}

var _ overlap.Merger = Reverse{}

// Merge takes the number of layers under which an iteration takes least, of those that leave
// activations and gradients within the memory; 0, the usual order, where none does.
func (Reverse) Merge(c *overlap.Costs) overlap.Plan {
	n := len(c.Layers)
	best, least := first(n, 0), unit.Forever
	for k := range n + 1 {
		plan := first(n, k)
		t, why := plan.Time(c)
		if why == "" && t.Iteration < least && (c.Memory == 0 || t.PeakKiB <= int64(c.Memory)<<10) {
			best, least = plan, t.Iteration
		}
	}
	return best
}

// first sends a message for each of n layers, the first k in reverse.
func first(n, k int) overlap.Plan {
	p := overlap.Single(n)
	p.Reverse, p.Own = int32(k), true
	return p
}
