package tiresias

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// PlacerDescription is what the placer says about itself.
var PlacerDescription = strategy.Description{
	Name: "tiresias-place", System: "Tiresias", Part: allocate.PlacePart, Status: "read",
	Source: "Gu et al., NSDI 2019; SymbioticLab/Tiresias simulator",
	Idea:   "jobs with skewed tensors on the fewest nodes possible, or not yet; others wherever there is room",
	Goal:   "throughput", Needs: "the skew: the largest tensor's part of the model", Live: "as simulated",
}

// Placer keeps jobs together whose model is skewed, since a few large tensors make
// for bursts that spread workers wait for, and lets them wait for the room; all
// others take the first room there is. Which is which the configured SkewLimit says.
type Placer struct {
	limit   int32
	fewest  fit.Fewest
	except  []plan.NodeID
	cluster *cluster.Cluster
	least   map[gang]int // nodes
}

// gang is what the fewest possible nodes depend on.
type gang struct {
	shape   plan.Shape
	workers int32
}

var _ allocate.Placer = (*Placer)(nil)

// NewPlacer returns the placer; the configuration must be valid.
func NewPlacer(c Config) *Placer { return &Placer{limit: int32(c.SkewLimit)} }

// Place scores by the number of nodes, the fewer the better.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	p.except = p.except[:0]
	from := plan.NodeID(0)
	for range k {
		into = allocate.Extend(into)
		c := &into[len(into)-1]
		var ok bool
		if need.Shape.Skew > p.limit {
			var found fit.Placement
			found, ok = p.fewest.Place(v, need, p.except, c.Slots)
			c.Slots, ok = found.Slots, ok && found.Nodes <= p.possible(v, need)
		} else {
			c.Slots, ok = fit.First(v, need, from, c.Slots)
		}
		if !ok {
			return into[:len(into)-1]
		}
		c.Score = -int64(fit.Nodes(c.Slots))
		from = c.Slots[0].Node + 1
		p.except = append(p.except, c.Slots[0].Node)
	}
	return into
}

// possible is the fewest nodes that would hold the gang if the cluster were idle and
// whole: those that are down count, for the job waits for them.
func (p *Placer) possible(v plan.View, need allocate.Need) int {
	if p.cluster != v.Cluster() {
		p.cluster, p.least = v.Cluster(), map[gang]int{}
	}
	key := gang{*need.Shape, need.Workers}
	n, known := p.least[key]
	if !known {
		n = fewest(p.cluster, need)
		p.least[key] = n
	}
	return n
}

func fewest(c *cluster.Cluster, need allocate.Need) int {
	holds := make([]int32, len(c.Nodes))
	for i := range c.Nodes {
		holds[i] = need.Shape.Capacity(c, int32(i))
	}
	slices.SortFunc(holds, func(a, b int32) int { return cmp.Compare(b, a) })
	left := need.Workers
	for n, h := range holds {
		if left -= min(left, h); left == 0 {
			return n + 1
		}
	}
	return 0
}
