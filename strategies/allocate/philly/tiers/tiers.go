// Package tiers is the mechanism of placers that wait for locality: how near each other
// the workers of a placement are, in three tiers, and the best placement of a tier. Tier
// Near is the fewest nodes that the gang could have in an idle cluster, all in one rack;
// tier Rack is any nodes of one rack; tier Any is any nodes.
package tiers

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// Tier is how near each other the workers of a gang are, the nearest first.
type Tier int

// The tiers.
const (
	Near Tier = iota
	Rack
	Any
)

// Search finds placements by tier. It is used again from one placement to the next.
type Search struct {
	fewest  fit.Fewest
	gang    fit.Gang
	cluster *cluster.Cluster
	racks   [][]plan.NodeID
	least   map[ask]extent
	order   []plan.NodeID
}

// ask is what the idle cluster is asked for.
type ask struct {
	shape   plan.Shape
	workers int32
}

// extent is the fewest nodes that a gang could have, and whether one rack has them.
type extent struct {
	nodes int
	rack  bool
}

// Place returns the best placement for a need that is no worse than a tier, and its own
// tier; ok is false where there is none. The excepted nodes are kept off.
func (s *Search) Place(v plan.View, need allocate.Need, worst Tier, except []plan.NodeID, into []plan.Slot) (p fit.Placement, is Tier, ok bool) {
	if s.cluster != v.Cluster() {
		s.learn(v.Cluster())
	}
	p, ok = s.fewest.Place(v, need, except, into)
	if !ok {
		return p, Any, false
	}
	least := s.leastOf(need)
	if is = least.tier(&p); is == Any && len(s.racks) > 1 {
		if in, found := s.inRack(v, need, except, p.Slots); found {
			p, is = in, least.tier(&in)
		} else {
			p, ok = s.fewest.Place(v, need, except, p.Slots[:0])
		}
	}
	return p, is, ok && is <= worst
}

// tier is how near a placement is beside the nearest there could be.
func (e extent) tier(p *fit.Placement) Tier {
	switch {
	case p.Nodes <= e.nodes && (p.Racks == 1 || !e.rack):
		return Near
	case p.Racks == 1:
		return Rack
	}
	return Any
}

func (s *Search) learn(c *cluster.Cluster) {
	s.cluster, s.racks, s.least = c, make([][]plan.NodeID, len(c.Racks)), map[ask]extent{}
	for i := range c.Nodes {
		rack := c.Nodes[i].Rack
		s.racks[rack] = append(s.racks[rack], plan.NodeID(i))
	}
}

// inRack places the gang on the fewest nodes of the rack where they are fewest.
func (s *Search) inRack(v plan.View, need allocate.Need, except []plan.NodeID, into []plan.Slot) (best fit.Placement, ok bool) {
	home := -1
	for rack := range s.racks {
		if p, found := s.of(v, need, rack, except, into); found && (home < 0 || p.Nodes < best.Nodes) {
			best, home = p, rack
		}
	}
	if home < 0 {
		return best, false
	}
	return s.of(v, need, home, except, into)
}

// of places the gang in a rack, on the nodes that hold most first.
func (s *Search) of(v plan.View, need allocate.Need, rack int, except []plan.NodeID, into []plan.Slot) (p fit.Placement, ok bool) {
	s.gang.Begin(v, need, except, into[:0])
	s.order = append(s.order[:0], s.racks[rack]...)
	slices.SortStableFunc(s.order, func(a, b plan.NodeID) int { return cmp.Compare(s.gang.Holds(b), s.gang.Holds(a)) })
	for _, n := range s.order {
		if s.gang.Holds(n) > 0 && s.gang.Fill(n, fit.Tightest) {
			break
		}
	}
	p.Slots, ok = s.gang.Done()
	p.Nodes, p.Racks = fit.Nodes(p.Slots), 1
	return p, ok
}

// leastOf is the fewest nodes for a gang, were the cluster idle.
func (s *Search) leastOf(need allocate.Need) extent {
	k := ask{*need.Shape, need.Workers}
	if least, known := s.least[k]; known {
		return least
	}
	all := make([]plan.NodeID, len(s.cluster.Nodes))
	for i := range all {
		all[i] = plan.NodeID(i)
	}
	least := extent{nodes: s.fewestOf(all, need)}
	for _, nodes := range s.racks {
		least.rack = least.rack || s.fewestOf(nodes, need) == least.nodes
	}
	s.least[k] = least
	return least
}

// fewestOf is how many of the nodes it takes, those that hold most first; more than all
// where they do not suffice.
func (s *Search) fewestOf(nodes []plan.NodeID, need allocate.Need) int {
	holds := make([]int32, len(nodes))
	for i, n := range nodes {
		holds[i] = need.Shape.Capacity(s.cluster, int32(n))
	}
	slices.SortFunc(holds, func(a, b int32) int { return cmp.Compare(b, a) })
	left := need.Workers
	for i, h := range holds {
		if left -= h; left <= 0 {
			return i + 1
		}
	}
	return len(s.cluster.Nodes) + 1
}
