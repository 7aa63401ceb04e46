package victims

import (
	"math"

	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/plan"
)

// ledger says how many workers of the need there is room for at most when some of
// the candidates are gone. It bounds the room from above, so a set that it finds too
// small need not be tried; for all but cut devices and turns it is exact for a placer
// that takes any node. Only nodes that a candidate is on are kept.
type ledger struct {
	shape   plan.Shape
	workers int64
	parts   []part  // of all candidates, those of one standing together
	first   []int32 // by candidate: its first part; one more at the end
	nodes   []nodeRoom
	devices []deviceRoom
	in      []bool  // by candidate: whether it is gone
	base    int64   // workers that the other nodes hold
	total   int64   // workers that all nodes hold now
	local   []int32 // by node of the cluster: 1 + its place in nodes
}

// part is what one grant of a candidate would leave.
type part struct {
	node, device             int32 // places in nodes and devices; device None for cores alone
	milli, memory, cpu, host int32
}

type nodeRoom struct {
	id           plan.NodeID
	device       int32 // its first
	useful       bool  // takes runs and is of a model the need may use
	cpu, host    int32
	units, holds int32 // wholly free devices or shares in all, and workers
	most         int32 // workers with all candidates gone
	from, to     int32 // its seats
}

type deviceRoom struct {
	free, memory, all int32
	cut, lost         bool
	units             int32
}

// load reads the room of the candidates and around them off the view.
func (l *ledger) load(in *Input) {
	for i := range l.nodes {
		l.local[l.nodes[i].id] = 0
	}
	v := in.View
	l.shape, l.workers = *in.Need.Shape, int64(in.Need.Workers)
	l.parts, l.first, l.nodes, l.devices = l.parts[:0], l.first[:0], l.nodes[:0], l.devices[:0]
	if len(l.local) < v.Nodes() {
		l.local = make([]int32, v.Nodes())
	}
	l.in = append(l.in[:0], make([]bool, len(in.Candidates))...)
	for i := range in.Candidates {
		l.first = append(l.first, int32(len(l.parts)))
		v.GrantsOf(in.Candidates[i].Run, func(g plan.Grant) {
			n := l.at(v, g.Node)
			p := part{node: n, device: plan.None, milli: g.Reserve, memory: g.Persist + g.Peak, cpu: g.CPU, host: g.Host}
			if g.Device != plan.None {
				p.device = l.nodes[n].device + int32(g.Device-v.Node(g.Node).First)
			}
			l.parts = append(l.parts, p)
		})
	}
	l.first = append(l.first, int32(len(l.parts)))
	l.base, l.total = 0, 0
	fit.EachNode(v, &l.shape, 0, func(n plan.NodeID) bool {
		if l.local[n] == 0 {
			l.base += int64(v.Holds(n, &l.shape))
		}
		return l.base >= l.workers
	})
	l.total = l.base
	for i := range l.nodes {
		l.recount(&l.nodes[i])
	}
}

// at returns the place of a node, which is read off the view when it is new.
func (l *ledger) at(v plan.View, id plan.NodeID) int32 {
	if i := l.local[id]; i > 0 {
		return i - 1
	}
	n := v.Node(id)
	room := nodeRoom{id: id, device: int32(len(l.devices)), cpu: n.FreeCPU, host: n.FreeHost,
		useful: n.Status == plan.Up && v.Allows(&l.shape, id)}
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		dev := v.Device(d)
		r := deviceRoom{free: dev.Free, memory: dev.FreeMemory, all: dev.Memory, cut: dev.Geometry != 0, lost: dev.Status.Out()}
		r.units = l.units(&r)
		room.units += r.units
		l.devices = append(l.devices, r)
	}
	l.nodes = append(l.nodes, room)
	l.local[id] = int32(len(l.nodes))
	return l.local[id] - 1
}

// units is what a device holds at most: shares, or itself when it is whole. Members
// of a turn overlap, so that their parts may add up to more than the device.
func (l *ledger) units(d *deviceRoom) int32 {
	switch free := min(1000, d.free); {
	case d.lost || l.shape.Devices == 0:
		return 0
	case l.shape.Share < 1000:
		n := free / l.shape.Share
		if l.shape.Memory > 0 {
			n = min(n, min(d.all, d.memory)/l.shape.Memory)
		}
		return max(0, n)
	case free == 1000 && !d.cut && d.all >= l.shape.Memory:
		return 1
	}
	return 0
}

// recount brings the workers of a node, and the total, up to date.
func (l *ledger) recount(n *nodeRoom) {
	holds := int32(0)
	if n.useful {
		holds = math.MaxInt32
		if l.shape.PerNode > 0 {
			holds = l.shape.PerNode
		}
		switch {
		case l.shape.Devices == 0:
		case l.shape.Share < 1000:
			holds = min(holds, n.units)
		default:
			holds = min(holds, n.units/l.shape.Devices)
		}
		if l.shape.CPU > 0 {
			holds = min(holds, n.cpu/l.shape.CPU)
		}
		if l.shape.Host > 0 {
			holds = min(holds, n.host/l.shape.Host)
		}
		holds = max(0, holds)
	}
	l.total += int64(holds - n.holds)
	n.holds = holds
}

// toggle takes a candidate away, or puts it back.
func (l *ledger) toggle(c int32) {
	sign := int32(1)
	if l.in[c] {
		sign = -1
	}
	l.in[c] = !l.in[c]
	parts := l.parts[l.first[c]:l.first[c+1]]
	for i := range parts {
		p := &parts[i]
		n := &l.nodes[p.node]
		n.cpu += sign * p.cpu
		n.host += sign * p.host
		if p.device != plan.None {
			d := &l.devices[p.device]
			d.free += sign * p.milli
			d.memory += sign * p.memory
			units := l.units(d)
			n.units += units - d.units
			d.units = units
		}
		if i+1 == len(parts) || parts[i+1].node != p.node {
			l.recount(n)
		}
	}
}

// enough reports whether there may be room for the need.
func (l *ledger) enough() bool { return l.total >= l.workers }

// possible reports whether there may be room with all candidates gone, and notes
// what every node would hold then.
func (l *ledger) possible() bool {
	for c := range l.in {
		l.toggle(int32(c))
	}
	for i := range l.nodes {
		l.nodes[i].most = l.nodes[i].holds
	}
	ok := l.enough()
	for c := range l.in {
		l.toggle(int32(c))
	}
	return ok
}
