package liquid

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/strategy"
)

// The stand of the claim: 2 domains of 2 racks of 8 nodes of 4 devices. A node has 10
// Gbps; a rack's uplink carries a quarter of what its nodes could send, a domain's half
// of what its racks could.
const (
	racks, nodesPerRack, perNode     = 4, 8, 4
	nodeGbps, rackGbps, domainGbps   = 10, 20, 20
	jobs, loadPart, medianS, sigma   = 300, .8, 1800, 1.
	instances, together, effort      = 20, 6, 200_000
	lookEvery, placements, leastFree = 10, 30, 16
)

// widths are the tasks of jobs and how often they come; a quarter of the tasks serve.
var widths = []struct {
	tasks  int32
	weight float64
}{{1, .3}, {4, .3}, {8, .25}, {16, .15}}

func idle() *network {
	n := &network{racks: racks}
	for i := range int32(racks * nodesPerRack) {
		n.sites = append(n.sites, Site{Rack: i / nodesPerRack, Domain: i / nodesPerRack / 2, Room: perNode, Devices: perNode})
		n.links = append(n.links, nodeGbps)
	}
	for range racks {
		n.links = append(n.links, rackGbps)
	}
	for range racks / 2 {
		n.links = append(n.links, domainGbps)
	}
	return n
}

// draw makes a gang: each worker exchanges half to twice of what is usual, in equal parts
// with all the servers.
func draw(rng *rand.Rand, from int, load float64) Gang {
	g := Gang{Tasks: widths[from].tasks}
	for i, u := from, rng.Float64(); i < len(widths); i++ {
		if g.Tasks = widths[i].tasks; u < widths[i].weight {
			break
		}
		u -= widths[i].weight
	}
	g.Servers = g.Tasks / 4
	g.Gbps = usual(load) * math.Exp2(2*rng.Float64()-1) / float64(max(1, g.Servers))
	return g
}

// usual is the traffic of a worker, in Gbps, that would load the uplinks of the domains
// so much if tasks were placed by chance: half of all pairs then cross them. At 0.8, as
// the devices are loaded, the network is neither idle nor asked for more than it carries.
func usual(load float64) float64 {
	tasks, workers := 0.0, 0.0
	for _, w := range widths {
		tasks += w.weight * float64(w.tasks)
		workers += w.weight * float64(w.tasks-w.tasks/4-(1-min(1, w.tasks/4)))
	}
	mean := (2 - .5) / (2 * math.Ln2) // of 2 to the power of -1 to 1, drawn evenly
	atOnce := loadPart * racks * nodesPerRack * perNode * workers / tasks
	return load * domainGbps / (atOnce * mean / 2)
}

// stream makes the jobs of a history, whose device-time is the load's part of what there
// is.
func (n *network) stream(rng *rand.Rand, network float64) {
	mean := 0.0
	for _, w := range widths {
		mean += w.weight * float64(w.tasks) * medianS * math.Exp(sigma*sigma/2)
	}
	at := 0.0
	for range jobs {
		at += rng.ExpFloat64() * mean / (loadPart * racks * nodesPerRack * perNode)
		n.jobs = append(n.jobs, divide.Arrival{At: at, Work: medianS * math.Exp(sigma*rng.NormFloat64())})
		n.gangs = append(n.gangs, draw(rng, 0, network))
	}
}

func byLiquid(n *network, g *Gang) []int32 {
	where := make([]int32, g.Tasks)
	newSpot(n.sites, published).greedy(g, candidates(n.sites, g.Tasks, nil), where)
	return where
}

// bySpread puts each task on the site with the most room.
func bySpread(n *network, g *Gang) []int32 {
	taken, where := make([]int32, len(n.sites)), make([]int32, g.Tasks)
	for t := range where {
		best := int32(0)
		for i := range n.sites {
			if n.sites[i].Room-taken[i] > n.sites[best].Room-taken[best] {
				best = int32(i)
			}
		}
		where[t] = best
		taken[best]++
	}
	return where
}

// byChance puts each task on a free device, drawn evenly.
func byChance(rng *rand.Rand) func(n *network, g *Gang) []int32 {
	return func(n *network, g *Gang) []int32 {
		var free []int32
		for i := range n.sites {
			for range n.sites[i].Room {
				free = append(free, int32(i))
			}
		}
		rng.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
		return free[:g.Tasks]
	}
}

// Measure places parameter server jobs on a partly used cluster, one by one and in
// batches, and plays a stream of jobs that share its links.
func Measure(seed uint64) map[string]float64 {
	m := map[string]float64{"batches_worse_than_greedy": 0}
	costs(seed, m)
	batches(seed, m)
	for _, load := range []float64{.6, .8, 1} {
		for _, name := range []string{"liquid", "spread", "random"} {
			n := idle()
			n.stream(rand.New(rand.NewPCG(seed, 1)), load)
			n.place = map[string]func(n *network, g *Gang) []int32{
				"liquid": byLiquid, "spread": bySpread, "random": byChance(rand.New(rand.NewPCG(seed, 2))),
			}[name]
			ranks := &ranking{n: n, rng: rand.New(rand.NewPCG(seed, 3)), off: name != "random" || load != loadPart}
			m[fmt.Sprintf("%s_jct_s_network%.0f", name, 100*load)] = n.play(ranks.look)
			if !ranks.off {
				m["inner_rank_correlation"] = ranks.sum / max(1, ranks.looks)
			}
		}
	}
	return m
}

// half takes a random part of each node's devices.
func (n *network) half(rng *rand.Rand) {
	for i := range n.sites {
		busy := rng.Int32N(perNode + 1)
		n.sites[i].Room, n.sites[i].Busy = perNode-busy, busy
	}
}

// costs sums the network costs of gangs, each alone on a cluster half used by chance.
func costs(seed uint64, m map[string]float64) {
	rng := rand.New(rand.NewPCG(seed, 4))
	chance := byChance(rng)
	for range instances {
		n := idle()
		n.half(rng)
		g := draw(rng, 1, loadPart)
		m["liquid_network_cost"] += Network(n.sites, &g, byLiquid(n, &g), published)
		m["spread_network_cost"] += Network(n.sites, &g, bySpread(n, &g), published)
		m["random_network_cost"] += Network(n.sites, &g, chance(n, &g), published)
	}
}

// batches places gangs together: one after the other greedily, and by the search.
func batches(seed uint64, m map[string]float64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for k := range uint64(instances) {
		n := idle()
		n.half(rng)
		gangs, left := []Gang{}, n.free()
		for range together {
			if g := draw(rng, 1, loadPart); g.Tasks <= left {
				gangs, left = append(gangs, g), left-g.Tasks
			}
		}
		_, greedy, _ := Batch(n.sites, gangs, published, 0, seed)
		_, searched, _ := Batch(n.sites, gangs, published, effort, seed+k)
		m["greedy_batch_cost"] += greedy
		m["searched_batch_cost"] += searched
		if searched > greedy {
			m["batches_worse_than_greedy"]++
		}
	}
}

// ranking compares, at moments of a history, random placements of one more gang: by
// their network cost, and by how long it would take there beside who runs.
type ranking struct {
	n          *network
	rng        *rand.Rand
	off        bool
	events     int
	sum, looks float64
}

func (r *ranking) look(running []int) {
	if r.events++; r.off || r.events%lookEvery != 0 || r.n.free() < leastFree {
		return
	}
	g, chance := draw(r.rng, 2, loadPart), byChance(r.rng)
	costs, times := make([]float64, placements), make([]float64, placements)
	for k := range placements {
		where := chance(r.n, &g)
		flows := [][]flow{r.n.flowsOf(&g, where)}
		for _, j := range running {
			flows = append(flows, r.n.flows[j])
		}
		costs[k], times[k] = Network(r.n.sites, &g, where, published), 1/r.n.rates(flows)[0]
	}
	if c := strategy.RankCorrelation(costs, times); !math.IsNaN(c) {
		r.sum, r.looks = r.sum+c, r.looks+1
	}
}
