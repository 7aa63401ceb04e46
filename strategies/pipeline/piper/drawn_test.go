package piper

import (
	"math"
	"math/rand/v2"
)

// Draw makes a chain of nodes that each run in up to three ways on one device or two, and
// devices whose memory is short now and then.
func Draw(rng *rand.Rand, nodes, devices int) *Graph {
	g := &Graph{Nodes: nodes, Devices: devices, Tensors: []int{1, 2}, Replicas: []int{1, 2, 4}, Microbatches: 8,
		Memory: float64(50 + rng.IntN(400)), Bandwidth: float64(1 + rng.IntN(20)), Turns: rng.IntN(2) == 0}
	all := make([][]Config, nodes)
	for i := range all {
		if i > 0 {
			g.Edges = append(g.Edges, Edge{i - 1, i})
		}
		c := Config{Time: float64(1 + rng.IntN(20)), Params: float64(rng.IntN(30)), Each: float64(rng.IntN(40)), Fixed: float64(rng.IntN(40))}
		if i > 0 {
			c.In = []Port{{i - 1, float64(rng.IntN(10))}}
		}
		if i < nodes-1 {
			c.Out = []Port{{i + 1, float64(rng.IntN(10))}}
		}
		for range 1 + rng.IntN(3) {
			all[i] = append(all[i], c)
			c.Time, c.Each = c.Time+float64(1+rng.IntN(5)), c.Each*rng.Float64()
		}
	}
	g.Configs = func(node, tensor, replicas int) []Config {
		made := make([]Config, len(all[node]))
		for w, c := range all[node] {
			made[w] = c
			made[w].Time /= float64(tensor * replicas)
			made[w].Each /= float64(tensor)
			made[w].Fixed /= float64(tensor)
		}
		return made
	}
	return g
}

// BruteForce tries all stages of a chain, with all degrees and all ways of their nodes.
func BruteForce(g *Graph) float64 {
	best := math.Inf(1)
	var behind func(end, sum, used int, slowest float64)
	behind = func(end, sum, used int, slowest float64) {
		if end == 0 {
			best = min(best, slowest)
			return
		}
		for first := range end {
			for _, t := range g.Tensors {
				for _, d := range g.Replicas {
					if used+t*d <= g.Devices {
						s := Stage{Tensor: t, Replicas: d, Configs: make([]int, end-first)}
						for n := first; n < end; n++ {
							s.Nodes = append(s.Nodes, n)
						}
						behind(first, sum+g.counts(d), used+t*d, max(slowest, leastOf(g, &s, sum+g.counts(d))))
					}
				}
			}
		}
	}
	behind(g.Nodes, 0, 0, 0)
	return best
}

// leastOf tries all ways of the nodes of a stage with such a sum from it on.
func leastOf(g *Graph, s *Stage, sum int) float64 {
	least := math.Inf(1)
	for {
		takes, held := 0.0, 0.0
		for k, n := range s.Nodes {
			c := g.Configs(n, s.Tensor, s.Replicas)[s.Configs[k]]
			takes += g.contribution(&c, s.Replicas, func(other int) bool { return other < s.Nodes[0] || other > s.Nodes[len(s.Nodes)-1] })
			held += c.Each*float64(g.kept(sum, s.Replicas)) + c.Fixed
		}
		if held <= g.Memory {
			least = min(least, takes)
		}
		k := 0
		for ; k < len(s.Nodes); k++ {
			if s.Configs[k]++; s.Configs[k] < len(g.Configs(s.Nodes[k], s.Tensor, s.Replicas)) {
				break
			}
			s.Configs[k] = 0
		}
		if k == len(s.Nodes) {
			return least
		}
	}
}
