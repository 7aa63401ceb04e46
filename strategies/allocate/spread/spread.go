// Package spread places worker by worker on the node with the most free devices,
// counting what the gang has taken already, so that load and heat are even and a
// lost node costs few workers. It is the opposite of consolidation.
package spread

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "spread", Part: allocate.PlacePart, Status: "after",
	Source: "folklore; worst fit, the default of service schedulers",
	Idea:   "each worker on the node, and each share on the device, with the most room",
	Goal:   "latency", Needs: "nothing", Live: "as simulated",
}

// Config tunes the search.
type Config struct {
	// Look is how many nodes with room on a partly free device are compared for a
	// share, once no wholly free device is left.
	Look int `yaml:"look" least:"1"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Look: 64} }

// Placer is the strategy. Its fields beyond the configuration are scratch.
type Placer struct {
	config Config
	gang   fit.Gang
	levels [][]plan.NodeID // by free devices: nodes the candidate has left with so many
	parts  []plan.DeviceID // devices compared for a share
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer { return &Placer{config: c} }

// Place fills the cluster from its emptiest nodes down; a runner-up keeps off the
// first node of every better candidate. The score is minus the most workers on one
// node.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	return p.gang.Candidates(v, need, k, into, func() (score int64) {
		if !p.fromEmpty(v, need.Shape) && need.Shape.Share < 1000 {
			p.fromParts(v, need.Shape)
		}
		for n := range p.gang.Nodes {
			score = min(score, -int64(p.gang.Taken(n)))
		}
		return score
	})
}

// fromEmpty goes down from the nodes with the most free devices. On each level it
// takes one worker from every node not used before, in order of id, then from those
// that it brought down to this level itself.
func (p *Placer) fromEmpty(v plan.View, shape *plan.Shape) bool {
	most := v.Room().MostFree()
	for len(p.levels) <= most {
		p.levels = append(p.levels, nil)
	}
	for i := range p.levels {
		p.levels[i] = p.levels[i][:0]
	}
	for free := most; free >= int(shape.Devices); free-- {
		for n := fit.NextWith(v, shape.Models, free, 0); n != plan.None; n = fit.NextWith(v, shape.Models, free, n+1) {
			if p.placeOn(v, shape, n, free) {
				return true
			}
		}
		for i := 0; i < len(p.levels[free]); i++ {
			if p.placeOn(v, shape, p.levels[free][i], free) {
				return true
			}
		}
	}
	return false
}

// placeOn places one worker on a node with so many devices left, where it can, and
// reports whether all are placed. Work without devices counts as one, so that it
// goes round as well.
func (p *Placer) placeOn(v plan.View, shape *plan.Shape, id plan.NodeID, free int) bool {
	if p.gang.Holds(id) <= 0 {
		return false
	}
	device := plan.DeviceID(plan.None)
	if shape.Share < 1000 {
		if device = p.empty(v, id); device == plan.None {
			return false
		}
	}
	left := max(0, free-max(1, int(shape.Devices)))
	p.levels[left] = append(p.levels[left], id)
	return p.gang.Add(id, device)
}

// empty returns the lowest device of a node that nobody has a share of.
func (p *Placer) empty(v plan.View, id plan.NodeID) plan.DeviceID {
	n := v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if dev := v.Device(d); dev.Whole() && p.gang.Shares(d) > 0 && p.gang.On(d) == 0 {
			return d
		}
	}
	return plan.None
}

// fromParts takes shares of the devices with the most room: those the candidate has
// used already, and the partly free ones, so many nodes at a time.
func (p *Placer) fromParts(v plan.View, shape *plan.Shape) {
	p.parts = p.parts[:0]
	for d := range p.gang.Devices {
		p.parts = append(p.parts, d)
	}
	from := p.more(v, shape, 0)
	for p.gang.Left() > 0 {
		best, room := plan.DeviceID(plan.None), int32(0)
		for _, d := range p.parts {
			if free := v.Device(d).Free - p.gang.On(d)*shape.Share; free > room && p.gang.Shares(d) > 0 && p.gang.Holds(v.Device(d).Node) > 0 {
				best, room = d, free
			}
		}
		switch {
		case best != plan.None:
			p.gang.Add(v.Device(best).Node, best)
		case from == plan.None:
			return
		default:
			from = p.more(v, shape, from)
		}
	}
}

// more adds the partly free devices of the next nodes to those compared, and returns
// the node to go on from.
func (p *Placer) more(v plan.View, shape *plan.Shape, from plan.NodeID) plan.NodeID {
	for looked := 0; looked < p.config.Look; from++ {
		if from = fit.NextShared(v, shape.Models, from); from == plan.None {
			return plan.None
		}
		if p.gang.Holds(from) <= 0 {
			continue
		}
		looked++
		n := v.Node(from)
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			if dev := v.Device(d); !dev.Whole() && p.gang.Shares(d) > 0 {
				p.parts = append(p.parts, d)
			}
		}
	}
	return from
}
