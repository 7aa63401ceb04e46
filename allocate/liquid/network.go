package liquid

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate/divide"
)

// network is the measured stand: devices in nodes, racks and domains behind uplinks, and
// jobs that go as fast as the links let them exchange.
type network struct {
	sites []Site
	links []float64 // Gbps: of nodes, then racks, then domains
	racks int
	jobs  []divide.Arrival
	gangs []Gang
	where [][]int32 // by job; nil until it starts
	flows [][]flow  // by job, where it crosses links
	// place puts a gang where there is room.
	place func(n *network, g *Gang) []int32
}

// flow is what a job at full speed sends over a link.
type flow struct {
	link int
	gbps float64
}

// flowsOf are those of a gang: each pair of tasks that talk crosses the uplinks of its
// nodes, of its racks and of its domains where they differ.
func (n *network) flowsOf(g *Gang, where []int32) []flow {
	load := make([]float64, len(n.links))
	for i, a := range where {
		for j := i + 1; j < len(where); j++ {
			b := where[j]
			if a == b || !g.peers() && g.server(int32(i)) == g.server(int32(j)) {
				continue
			}
			x, y := &n.sites[a], &n.sites[b]
			load[a] += g.Gbps
			load[b] += g.Gbps
			if x.Rack != y.Rack {
				load[len(n.sites)+int(x.Rack)] += g.Gbps
				load[len(n.sites)+int(y.Rack)] += g.Gbps
			}
			if x.Domain != y.Domain {
				load[len(n.sites)+n.racks+int(x.Domain)] += g.Gbps
				load[len(n.sites)+n.racks+int(y.Domain)] += g.Gbps
			}
		}
	}
	var flows []flow
	for l, gbps := range load {
		if gbps > 0 {
			flows = append(flows, flow{l, gbps})
		}
	}
	return flows
}

// rates are the parts of their full speed that jobs get, max-min: all rise together
// until a link is full, which holds those that cross it.
func (n *network) rates(flows [][]flow) []float64 {
	parts, open := make([]float64, len(flows)), make([]int, 0, len(flows))
	for i, f := range flows {
		if parts[i] = 1; len(f) > 0 {
			parts[i] = 0
			open = append(open, i)
		}
	}
	free := slices.Clone(n.links)
	for len(open) > 0 {
		load, step := make([]float64, len(free)), math.Inf(1)
		for _, i := range open {
			step = min(step, 1-parts[i])
			for _, f := range flows[i] {
				load[f.link] += f.gbps
			}
		}
		for l, gbps := range load {
			if gbps > 0 {
				step = min(step, free[l]/gbps)
			}
		}
		for l, gbps := range load {
			free[l] -= step * gbps
		}
		open = slices.DeleteFunc(open, func(i int) bool {
			parts[i] += step
			return parts[i] >= 1-1e-9 || slices.ContainsFunc(flows[i], func(f flow) bool { return free[f.link] <= 1e-9*n.links[f.link] })
		})
	}
	return parts
}

// put takes the devices of a gang, and take gives them back.
func (n *network) put(j int, where []int32) {
	n.where[j], n.flows[j] = where, n.flowsOf(&n.gangs[j], where)
	for _, s := range where {
		n.sites[s].Room--
		n.sites[s].Busy++
	}
}

func (n *network) take(j int) {
	for _, s := range n.where[j] {
		n.sites[s].Room++
		n.sites[s].Busy--
	}
	n.flows[j] = nil
}

// play starts jobs in their order as devices come free and returns the mean JCT. Each
// time something changed, look sees who runs.
func (n *network) play(look func(running []int)) float64 {
	n.where, n.flows = make([][]int32, len(n.jobs)), make([][]flow, len(n.jobs))
	var running []int
	ends := divide.Run(n.jobs, 0, func(_ float64, active []int, _ []float64, pace []divide.Pace) {
		for _, j := range running {
			if _, lives := slices.BinarySearch(active, j); !lives {
				n.take(j)
			}
		}
		running = running[:0]
		blocked := false
		for _, j := range active {
			if n.where[j] == nil && !blocked {
				if blocked = n.free() < n.gangs[j].Tasks; !blocked {
					n.put(j, n.place(n, &n.gangs[j]))
				}
			}
			if n.where[j] != nil {
				running = append(running, j)
			}
		}
		flows := make([][]flow, len(running))
		for i, j := range running {
			flows[i] = n.flows[j]
		}
		for i, part := range n.rates(flows) {
			pace[running[i]].Rate = part
		}
		look(running)
	})
	return divide.MeanJCT(n.jobs, ends)
}

func (n *network) free() (devices int32) {
	for i := range n.sites {
		devices += n.sites[i].Room
	}
	return devices
}
