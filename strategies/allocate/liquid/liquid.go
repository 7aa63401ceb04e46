// Package liquid places the tasks of a job where their traffic is cheapest (Liquid; Gu
// et al., IEEE TPDS 2022). A pair of tasks that talk, a parameter server and a worker,
// costs 0 on one node, 1 in one rack, 4 in one domain of racks and 40 beyond, for each
// unit of bandwidth; servers seek nodes with little load and workers those with much.
// Immediate mode places one job greedily, best fit, servers and workers in turn, on at
// most 3*tasks+5 nodes; batch mode places all waiting jobs at once by a genetic search
// that begins at the greedy placement.
//
// Read: the public code, PasaLab/Liquid. Ours (after): which nodes are looked at where
// there are more, those that hold most of the job; the load of the very node in place of
// the mean over all; and a search bounded by work and not by seconds, so that the same
// question has the same answer.
//
// A run's ranks follow its slots, node by node. So that servers, which are its first
// ranks, are where they were meant to be, the nodes of a placement come in the order in
// which its tasks were placed, servers first; on a node that has both, and where servers
// are on several, the ranks are not exactly those of the plan. The cost counts as planned.
//
// Left out: the random forest that estimates what a job needs; sharing a device where the
// predicted utilisations stay under 130 % and starting a job before its predecessor ends,
// both off in the published defaults. All want a utilisation, which no strategy is shown.
package liquid

import (
	"math"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "liquid", System: "Liquid", Part: allocate.PlacePart, Status: "after",
	Source:     "Gu et al., TPDS 2022; PasaLab/Liquid",
	Idea:       "task by task where the traffic of servers and workers crosses the fewest racks",
	Challenges: []string{"C6"}, Goal: "throughput",
	Needs: "which ranks are parameter servers, and the bandwidth of a worker; without them all talk to all",
	Live:  "as simulated; racks are from the topology labels of Kubernetes' nodes, and this machine is one",
	Inner: "network cost: the traffic of the tasks over the distance between their nodes",
}

// Config says what the network is like.
type Config struct {
	// RacksPerDomain is how many racks, by id, make a domain with links of its own; 0
	// makes all racks one domain.
	RacksPerDomain int32 `yaml:"racks-per-domain" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{} }

// Placer is immediate mode. Its fields beyond the configuration are scratch.
type Placer struct {
	config Config
	gang   fit.Gang
	except []plan.NodeID
	sites  []Site
	spot   spot
	look   []int32
	where  []int32
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer { return &Placer{config: c} }

// Place places the job greedily; a runner-up keeps off the first node of every better
// candidate. The score is minus the cost, in thousandths.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	p.except = p.except[:0]
	g := gangOf(v, need)
	p.survey(v, need.Shape)
	for range k {
		for _, id := range p.except {
			p.sites[id].Room = 0
		}
		p.look = candidates(p.sites, g.Tasks, p.look)
		p.where = append(p.where[:0], make([]int32, g.Tasks)...)
		p.spot.reset(p.sites, published)
		if !p.spot.greedy(&g, p.look, p.where) {
			break
		}
		into = allocate.Extend(into)
		c := &into[len(into)-1]
		p.gang.Begin(v, need, nil, c.Slots)
		for _, node := range p.where { // by rank: servers first
			p.gang.Add(plan.NodeID(node), p.device(v, plan.NodeID(node), need.Shape))
		}
		c.Slots, _ = p.gang.Done()
		c.Score = -int64(math.Round(1000 * p.spot.cost(&g, p.where)))
		p.except = append(p.except, c.Slots[0].Node)
	}
	return into
}

// gangOf is a job in the terms of the cost.
func gangOf(v plan.View, need allocate.Need) Gang {
	g := Gang{Tasks: need.Workers, Servers: v.ProfileOf(need.Job).Servers, Gbps: float64(v.Job(need.Job).Traffic) / 1000}
	if g.Gbps == 0 {
		g.Gbps = 1 // unknown: as if it had some
	}
	return g
}

// survey reads what is free for a shape.
func (p *Placer) survey(v plan.View, shape *plan.Shape) {
	p.sites = p.sites[:0]
	for id := range plan.NodeID(v.Nodes()) {
		p.sites = append(p.sites, siteOf(v, id, shape, p.config))
	}
}

func siteOf(v plan.View, id plan.NodeID, shape *plan.Shape, c Config) Site {
	n := v.Node(id)
	s := Site{Rack: n.Rack, Room: v.Holds(id, shape), Busy: n.Count - n.FreeDevices, Devices: n.Count}
	if c.RacksPerDomain > 0 {
		s.Domain = n.Rack / c.RacksPerDomain
	}
	return s
}

// device is the one that the next share on a node takes: the tightest with room, of
// equals the lowest; None for whole devices and cores.
func (p *Placer) device(v plan.View, id plan.NodeID, shape *plan.Shape) plan.DeviceID {
	best := plan.DeviceID(plan.None)
	if shape.Share == 1000 || shape.Devices == 0 {
		return best
	}
	room, n := int32(0), v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if p.gang.Shares(d) <= 0 {
			continue
		}
		if free := v.Device(d).Free - p.gang.On(d)*shape.Share; best == plan.None || free < room {
			best, room = d, free
		}
	}
	return best
}
