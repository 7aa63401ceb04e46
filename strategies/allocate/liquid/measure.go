package liquid

import (
	"math"
	"math/rand/v2"
)

// Measure places gangs together, six at a time: one after the other greedily, and by the
// search. The cluster is 2 domains of 2 racks of 8 nodes of 4 devices, half used by chance.
func Measure(seed uint64) map[string]float64 {
	const instances, together, effort = 20, 6, 200_000
	m, rng := map[string]float64{"batches_worse_than_greedy": 0}, rand.New(rand.NewPCG(seed, 5))
	for k := range uint64(instances) {
		sites, left := halfUsed(rng)
		var gangs []Gang
		for range together {
			if g := draw(rng); g.Tasks <= left {
				gangs, left = append(gangs, g), left-g.Tasks
			}
		}
		_, greedy, _ := Batch(sites, gangs, published, 0, seed)
		_, searched, _ := Batch(sites, gangs, published, effort, seed+k)
		m["greedy_batch_cost"] += greedy
		m["searched_batch_cost"] += searched
		if searched > greedy {
			m["batches_worse_than_greedy"]++
		}
	}
	return m
}

// halfUsed is a cluster with a random part of each node's devices free, and how many are.
func halfUsed(rng *rand.Rand) (sites []Site, free int32) {
	for i := range int32(32) {
		busy := rng.Int32N(5)
		sites = append(sites, Site{Rack: i / 8, Domain: i / 16, Room: 4 - busy, Busy: busy, Devices: 4})
		free += 4 - busy
	}
	return sites, free
}

// draw makes a gang of which a quarter serves.
func draw(rng *rand.Rand) Gang {
	g := Gang{Tasks: []int32{4, 4, 8, 8, 16}[rng.IntN(5)]}
	g.Servers = g.Tasks / 4
	g.Gbps = math.Exp2(2*rng.Float64()-1) / float64(g.Servers)
	return g
}
