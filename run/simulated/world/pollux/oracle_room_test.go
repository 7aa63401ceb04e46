package pollux

// room is the free devices of each node, as both baselines place jobs in them.
type room struct {
	free []int
}

func newRoom(cluster Config, held []Grant) room {
	r := room{free: make([]int, cluster.Nodes)}
	for n := range r.free {
		r.free[n] = cluster.DevicesPerNode
	}
	for _, g := range held {
		for _, n := range g.Nodes {
			r.free[n]--
		}
	}
	return r
}

// take fills the node with most free devices, lowest first among equals, then the
// next, until all replicas are placed; the caller has counted that they fit.
func (r room) take(replicas int) []int {
	var nodes []int
	for len(nodes) < replicas {
		most := 0
		for n, free := range r.free {
			if free > r.free[most] {
				most = n
			}
		}
		for range min(r.free[most], replicas-len(nodes)) {
			nodes = append(nodes, most)
			r.free[most]--
		}
	}
	return nodes
}
