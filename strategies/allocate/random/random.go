// Package random places each worker on a node drawn evenly from those with room,
// and a share on a device drawn evenly from those of the node: the baseline that a
// placer has to beat. The draw follows from the seed, the job and its attempt alone.
package random

import (
	"math/rand/v2"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "random", Part: allocate.PlacePart, Status: "null",
	Source: "folklore; the baseline of FGD (Weng et al., ATC 2023)",
	Idea:   "any node with room, and for a share any of its devices, at even odds",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// Config starts the draw.
type Config struct {
	Seed uint64 `yaml:"seed"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Seed: 1} }

// draws is how often a node is drawn from all nodes before those with room are
// listed: where many have room, a draw soon finds one, and where few have, the list
// is short.
const draws = 64

// Placer is the strategy. Its fields beyond the configuration are scratch.
type Placer struct {
	config Config
	chance *rand.PCG
	gang   fit.Gang
	listed []plan.NodeID // those with room, once a candidate had to list them
	walked bool          // whether it had to
	usable []plan.DeviceID
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer.
func New(c Config) *Placer { return &Placer{config: c, chance: rand.NewPCG(0, 0)} }

// Place draws worker by worker. A runner-up keeps off the first node of every better
// candidate; all scores are equal.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	p.chance.Seed(p.config.Seed, uint64(need.Job)<<32|uint64(uint32(need.Attempt)))
	dice := rand.New(p.chance)
	return p.gang.Candidates(v, need, k, into, func() int64 {
		p.walked = false
		for done := false; !done; {
			node := p.node(v, need.Shape, dice)
			if node == plan.None {
				break
			}
			done = p.gang.Add(node, p.device(v, need.Shape, node, dice))
		}
		return 0
	})
}

// node draws one of the nodes with room.
func (p *Placer) node(v plan.View, shape *plan.Shape, dice *rand.Rand) plan.NodeID {
	for i := 0; i < draws && !p.walked && v.Nodes() > 0; i++ {
		if n := plan.NodeID(dice.IntN(v.Nodes())); p.gang.Holds(n) > 0 {
			return n
		}
	}
	if !p.walked {
		p.walked, p.listed = true, p.listed[:0]
		fit.EachNode(v, shape, 0, func(n plan.NodeID) bool {
			if p.gang.Holds(n) > 0 {
				p.listed = append(p.listed, n)
			}
			return false
		})
	}
	for len(p.listed) > 0 {
		i := dice.IntN(len(p.listed))
		if n := p.listed[i]; p.gang.Holds(n) > 0 {
			return n
		}
		last := len(p.listed) - 1
		p.listed[i], p.listed = p.listed[last], p.listed[:last]
	}
	return plan.None
}

// device draws one of a node's devices with room for a share; None for other work.
func (p *Placer) device(v plan.View, shape *plan.Shape, id plan.NodeID, dice *rand.Rand) plan.DeviceID {
	if shape.Share == 1000 || shape.Devices == 0 {
		return plan.None
	}
	p.usable = p.usable[:0]
	n := v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if p.gang.Shares(d) > 0 {
			p.usable = append(p.usable, d)
		}
	}
	return p.usable[dice.IntN(len(p.usable))]
}
