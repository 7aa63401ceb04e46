package world

import (
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/plan"
)

// byPlan puts on links what a run sends by the plan of its offer, in the place of what its job says of itself: each node
// sends to others, and where they are in other racks those that have a neighbour there. How much, and how long a
// step is with less than the whole link, is in the offer as it truly is or, where nobody knows better, as believed.
//
// It reports whether there is such a plan, on several nodes.
func (w *World) byPlan(v plan.View, id plan.RunID, x *run, kind int32) bool {
	workers := v.Run(id).Workers
	s := w.truth[x.job].menu.Spread(kind, workers, true)
	if len(s.Shares) == 0 {
		s = v.Menu(x.job).Spread(kind, workers, true)
	}
	if s.Sends == 0 || len(s.Shares) < 2 {
		return false
	}
	var nodes []plan.NodeID
	least := math.Inf(1)
	v.GrantsOf(id, func(g plan.Grant) {
		if len(nodes) == 0 || nodes[len(nodes)-1] != g.Node {
			nodes = append(nodes, g.Node)
			if c := w.c.LinkBandwidth(w.c.NodeLink(int32(g.Node))); c > 0 {
				least = min(least, float64(c))
			}
		}
	})
	if len(nodes) < 2 || math.IsInf(least, 1) {
		return false // no link has an end
	}
	x.shares, x.sends, x.demand = s.Shares, min(1, float64(s.Sends)/least), x.demand[:0]
	for _, n := range nodes {
		x.demand = append(x.demand, maxmin.Use{Link: w.c.NodeLink(int32(n)), Per: least})
	}
	// A plan has its nodes in a row, and what one sends goes to the next and to the one before.
	rack := func(i int) int32 { return w.c.Nodes[nodes[i]].Rack }
	for i := range nodes {
		if i > 0 && rack(i-1) != rack(i) || i < len(nodes)-1 && rack(i+1) != rack(i) {
			link := w.c.RackLink(rack(i))
			if at := slices.IndexFunc(x.demand, func(u maxmin.Use) bool { return u.Link == link }); at >= 0 {
				x.demand[at].Per += least
			} else {
				x.demand = append(x.demand, maxmin.Use{Link: link, Per: least})
			}
		}
	}
	x.demand = w.limited(x.demand)
	return true
}

// crossing keeps the link demands of a run that spans nodes, and adds its rack
// uplinks where it spans racks.
func (w *World) crossing(d []maxmin.Use, nodes int) []maxmin.Use {
	if nodes < 2 {
		return nil
	}
	byRack := map[int32]float64{}
	var racks []int32
	for _, x := range d {
		rack := w.c.Nodes[x.Link].Rack
		if _, seen := byRack[rack]; !seen {
			racks = append(racks, rack)
		}
		byRack[rack] += x.Per
	}
	if len(racks) > 1 {
		for _, rack := range racks {
			d = append(d, maxmin.Use{Link: w.c.RackLink(rack), Per: byRack[rack]})
		}
	}
	return w.limited(d)
}

// limited leaves out the links without a limit.
func (w *World) limited(d []maxmin.Use) []maxmin.Use {
	kept := d[:0]
	for _, x := range d {
		if !math.IsInf(w.net.capacity[x.Link], 1) || w.links[x.Link].down {
			kept = append(kept, x)
		}
	}
	return kept
}
