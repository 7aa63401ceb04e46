// Package scored is the mechanism of placers that give every node with room a score in
// whole points, as plug-ins of a cluster scheduler do: each worker goes to the node with
// the highest, of equals to the lowest id, and a share to the tightest device there.
//
// The coarseness of whole points matters, since it decides how often the tie-break does.
// Scores are remembered by node and shape until the node changes; every placement still
// compares all nodes.
package scored

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// Node is what a node has free behind what the candidate has taken of it.
type Node struct {
	ID    plan.NodeID
	CPU   int64   // thousandths of a core
	Free  []int32 // thousandths by device; a device that is cut is never wholly free
	Total int64   // the sum of Free
	// MostCPU and MostTotal are what the largest nodes of the cluster have.
	MostCPU, MostTotal int64
}

// Whole is how many devices are wholly free.
func (n *Node) Whole() (devices int32) {
	for _, free := range n.Free {
		if free == 1000 {
			devices++
		}
	}
	return devices
}

// Score says how good a node with room is for one more worker of a shape; more is
// better. It must follow from its arguments alone.
type Score func(v plan.View, n *Node, shape *plan.Shape) int64

// Placer places by a score. All it remembers follows from the State it is asked about,
// which must be the same from call to call.
type Placer struct {
	score Score
	gang  fit.Gang

	cluster *cluster.Cluster
	tables  map[plan.Shape][]entry // by node
	node    Node
}

// entry is the score of a node as long as it has this stamp; no room is noRoom.
type entry struct{ stamp, score int64 } // the stamp plus one: zero is never

const noRoom = -1 << 62

// remembered bounds the scores that are kept, over all shapes and nodes.
const remembered = 1 << 22

var _ allocate.Placer = (*Placer)(nil)

// New returns a placer by a score.
func New(s Score) *Placer { return &Placer{score: s} }

// Place puts worker by worker on the best node; a runner-up keeps off the first node
// of every better candidate. The score is the sum over the workers.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	table := p.table(v, need.Shape)
	return p.gang.OneByOne(v, need, k, into, func() (plan.NodeID, plan.DeviceID, int64) {
		node, score := p.best(v, need.Shape, table)
		if node == plan.None {
			return node, plan.None, 0
		}
		return node, p.tightest(v, node, need.Shape), score
	})
}

// table returns the remembered scores of a shape, by node.
func (p *Placer) table(v plan.View, shape *plan.Shape) []entry {
	if p.cluster != v.Cluster() {
		p.cluster, p.tables = v.Cluster(), map[plan.Shape][]entry{}
		p.node.MostCPU, p.node.MostTotal = 0, 0
		for i := range p.cluster.Nodes {
			n := &p.cluster.Nodes[i]
			p.node.MostCPU, p.node.MostTotal = max(p.node.MostCPU, int64(n.CPU)), max(p.node.MostTotal, 1000*int64(n.Count))
		}
	}
	t := p.tables[*shape]
	if t == nil {
		if (len(p.tables)+1)*v.Nodes() > remembered {
			clear(p.tables)
		}
		t = make([]entry, v.Nodes())
		p.tables[*shape] = t
	}
	return t
}

// best returns the node with the highest score for the next worker, of equals the
// lowest.
func (p *Placer) best(v plan.View, shape *plan.Shape, table []entry) (plan.NodeID, int64) {
	node, best := plan.NodeID(plan.None), int64(noRoom)
	for id := range plan.NodeID(len(table)) {
		if p.gang.Off(id) {
			continue
		}
		e := &table[id]
		if p.gang.Taken(id) > 0 {
			e = &entry{score: p.of(v, id, shape)}
		} else if stamp := v.Node(id).Stamp + 1; e.stamp != stamp {
			*e = entry{stamp, p.of(v, id, shape)}
		}
		if e.score > best {
			node, best = id, e.score
		}
	}
	return node, best
}

// of scores a node for one more worker of the candidate.
func (p *Placer) of(v plan.View, id plan.NodeID, shape *plan.Shape) int64 {
	if p.gang.Holds(id) <= 0 {
		return noRoom
	}
	is, n := v.Node(id), &p.node
	n.ID, n.CPU = id, int64(is.FreeCPU)-int64(p.gang.Taken(id))*int64(shape.CPU)
	n.Free, n.Total = n.Free[:0], 0
	taken := int32(0) // whole devices, the first first
	if shape.Share == 1000 {
		taken = p.gang.Taken(id) * shape.Devices
	}
	for d := is.First; d < is.First+plan.DeviceID(is.Count); d++ {
		dev := v.Device(d)
		free := dev.Free
		switch {
		case dev.Status.Out():
			free = 0
		case shape.Share < 1000:
			free -= p.gang.On(d) * shape.Share
		case taken > 0 && dev.Whole():
			free, taken = 0, taken-1
		}
		if dev.Geometry != 0 {
			free = min(free, 999)
		}
		n.Free = append(n.Free, free)
		n.Total += int64(free)
	}
	return p.score(v, n, shape)
}

// tightest returns the device with the least room that still holds a share, of equals
// the lowest; None for other work.
func (p *Placer) tightest(v plan.View, id plan.NodeID, shape *plan.Shape) plan.DeviceID {
	if shape.Share == 1000 || shape.Devices == 0 {
		return plan.None
	}
	best, room, n := plan.DeviceID(plan.None), int32(0), v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		free := v.Device(d).Free - p.gang.On(d)*shape.Share
		if p.gang.Shares(d) > 0 && (best == plan.None || free < room) {
			best, room = d, free
		}
	}
	return best
}
