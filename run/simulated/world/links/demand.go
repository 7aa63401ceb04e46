package links

import (
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/plan"
)

// Row is what a run puts on links whose nodes stand in a row, and what one sends goes to the
// next and to the one before: each node's uplink, and where they are in other racks the uplinks of
// those that have a neighbour there. Each carries as much as the narrowest of the nodes' uplinks; without
// an end there is none.
func (n *Net) Row(nodes []plan.NodeID) (demand []maxmin.Use, narrowest float64) {
	narrowest = math.Inf(1)
	for _, node := range nodes {
		if c := n.c.LinkBandwidth(n.c.NodeLink(int32(node))); c > 0 {
			narrowest = min(narrowest, float64(c))
		}
	}
	if math.IsInf(narrowest, 1) {
		return nil, narrowest
	}
	for _, node := range nodes {
		demand = append(demand, maxmin.Use{Link: n.c.NodeLink(int32(node)), Per: narrowest})
	}
	rack := func(i int) int32 { return n.c.Nodes[nodes[i]].Rack }
	for i := range nodes {
		if i > 0 && rack(i-1) != rack(i) || i < len(nodes)-1 && rack(i+1) != rack(i) {
			link := n.c.RackLink(rack(i))
			if at := slices.IndexFunc(demand, func(u maxmin.Use) bool { return u.Link == link }); at >= 0 {
				demand[at].Per += narrowest
			} else {
				demand = append(demand, maxmin.Use{Link: link, Per: narrowest})
			}
		}
	}
	return n.limited(demand), narrowest
}

// Crossing keeps the link demands of a run that spans nodes, and adds its rack
// uplinks where it spans racks.
func (n *Net) Crossing(d []maxmin.Use, nodes int) []maxmin.Use {
	if nodes < 2 {
		return nil
	}
	byRack := map[int32]float64{}
	var racks []int32
	for _, x := range d {
		rack := n.c.Nodes[x.Link].Rack
		if _, seen := byRack[rack]; !seen {
			racks = append(racks, rack)
		}
		byRack[rack] += x.Per
	}
	if len(racks) > 1 {
		for _, rack := range racks {
			d = append(d, maxmin.Use{Link: n.c.RackLink(rack), Per: byRack[rack]})
		}
	}
	return n.limited(d)
}

// limited leaves out the links without a limit.
func (n *Net) limited(d []maxmin.Use) []maxmin.Use {
	kept := d[:0]
	for _, x := range d {
		if !math.IsInf(n.capacity[x.Link], 1) || n.down[x.Link] {
			kept = append(kept, x)
		}
	}
	return kept
}
