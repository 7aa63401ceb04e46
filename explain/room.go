package explain

import (
	"math"
	"slices"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

// room is what every node has free for one shape. It is a copy that a question may
// change, to see what would be if it were so.
type room struct {
	v      plan.View
	shape  *plan.Shape
	nodes  []spare
	free   []int32 // by device, thousandths; more than 1000 where one turn was freed of several
	memory []int32 // by device, MiB
	// What is not looked at.
	anyModel, noCores, noHost, noMemory, noCuts bool
}

// spare is what a node has beside its devices.
type spare struct {
	cpu, host int32
	open      bool
	held      int32 // wholly free devices that are kept for others
	noShares  bool  // the parts of devices that are free are kept for others
}

func newRoom(v plan.View, shape *plan.Shape) *room {
	r := &room{v: v, shape: shape, nodes: make([]spare, v.Nodes()), free: make([]int32, v.Devices()), memory: make([]int32, v.Devices())}
	for id := range plan.NodeID(v.Nodes()) {
		n := v.Node(id)
		r.nodes[id] = spare{cpu: n.FreeCPU, host: n.FreeHost, open: n.Status == plan.Up}
	}
	for id := range plan.DeviceID(v.Devices()) {
		d := v.Device(id)
		r.free[id], r.memory[id] = d.Free, d.FreeMemory
	}
	return r
}

// emptied is the room if nothing ran.
func emptied(v plan.View, shape *plan.Shape) *room {
	r := newRoom(v, shape)
	r.noCuts = true
	for id := range r.nodes {
		n := &v.Cluster().Nodes[id]
		r.nodes[id].cpu, r.nodes[id].host = int32(n.CPU), int32(n.Memory)
	}
	for id := range plan.DeviceID(v.Devices()) {
		r.free[id], r.memory[id] = 1000, v.Device(id).Memory
	}
	return r
}

func (r *room) copy() *room {
	c := *r
	c.nodes, c.free, c.memory = slices.Clone(r.nodes), slices.Clone(r.free), slices.Clone(r.memory)
	return &c
}

// open lets the nodes take workers whose status is one of those.
func (r *room) open(statuses ...plan.NodeStatus) *room {
	for id := range r.nodes {
		r.nodes[id].open = r.nodes[id].open || slices.Contains(statuses, r.v.Node(plan.NodeID(id)).Status)
	}
	return r
}

// keep takes out what is held for others.
func (r *room) keep(holds []plan.Hold) *room {
	for _, h := range holds {
		n := &r.nodes[h.Node]
		n.held, n.noShares = n.held+h.Devices, n.noShares || h.Shared
		n.cpu, n.host = n.cpu-h.CPU, n.host-h.Host
	}
	return r
}

// total is how many workers there is room for, on all nodes.
func (r *room) total() (workers int64) {
	for id := range r.nodes {
		workers += int64(r.holds(plan.NodeID(id)))
	}
	return workers
}

// holds is how many workers a node has room for.
func (r *room) holds(id plan.NodeID) int32 {
	n, of := &r.nodes[id], r.v.Node(id)
	if !n.open || !r.anyModel && r.shape.Models&(1<<of.Model) == 0 || !r.v.InSet(r.shape, id) {
		return 0
	}
	most := int32(math.MaxInt32)
	if r.shape.CPU > 0 && !r.noCores {
		most = min(most, n.cpu/r.shape.CPU)
	}
	if r.shape.Host > 0 && !r.noHost {
		most = min(most, n.host/r.shape.Host)
	}
	switch {
	case r.shape.Devices == 0 || most <= 0:
		return max(0, most)
	case r.shape.Share == 1000:
		return min(most, max(0, r.whole(id)-n.held)/r.shape.Devices)
	}
	return min(most, r.shares(id))
}

// whole counts a node's devices of which a worker can have all.
func (r *room) whole(id plan.NodeID) (devices int32) {
	n := r.v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if r.free[d] < 1000 {
			continue
		}
		if dev := r.v.Device(d); !dev.Status.Out() && (r.noCuts || dev.Geometry == 0) && (r.noMemory || dev.Memory >= r.shape.Memory) {
			devices++
		}
	}
	return devices
}

// shares counts the workers that parts of a node's devices have room for.
func (r *room) shares(id plan.NodeID) (workers int32) {
	n, held := r.v.Node(id), r.nodes[id].held
	for d := n.First + plan.DeviceID(n.Count) - 1; d >= n.First; d-- {
		dev := r.v.Device(d)
		whole := r.free[d] >= 1000 && dev.Geometry == 0
		switch {
		case dev.Status.Out() || !whole && r.nodes[id].noShares:
			continue
		case whole && held > 0:
			held--
			continue
		}
		fit := min(r.free[d], 1000) / r.shape.Share
		if r.shape.Memory > 0 && !r.noMemory {
			fit = min(fit, r.memory[d]/r.shape.Memory)
		}
		if dev.Geometry != 0 && !r.noCuts {
			fit = min(fit, r.parts(d))
		}
		workers += max(0, fit)
	}
	return workers
}

// parts counts the free pieces of a cut device that hold a worker.
func (r *room) parts(d plan.DeviceID) (pieces int32) {
	dev := r.v.Device(d)
	for _, p := range r.v.Cluster().Models[r.v.Node(dev.Node).Model].Geometries[dev.Geometry].Parts {
		if p.Milli >= unit.Milli(r.shape.Share) && p.Memory >= unit.MiB(r.shape.Memory) {
			pieces++
		}
	}
	r.v.GrantsOn(d, func(g plan.Grant) {
		if r.v.Run(g.Run).Status != plan.Stopping {
			pieces--
		}
	})
	return pieces
}

// release lets a run end, or with -1 brings it back. It returns the change in how many
// workers there is room for.
func (r *room) release(run plan.RunID, sign int32) (workers int64) {
	var nodes []plan.NodeID
	r.v.GrantsOf(run, func(g plan.Grant) {
		if len(nodes) == 0 || nodes[len(nodes)-1] != g.Node && !slices.Contains(nodes, g.Node) {
			nodes = append(nodes, g.Node)
		}
	})
	for _, id := range nodes {
		workers -= int64(r.holds(id))
	}
	r.v.GrantsOf(run, func(g plan.Grant) {
		r.nodes[g.Node].cpu += sign * g.CPU
		r.nodes[g.Node].host += sign * g.Host
		if g.Device != plan.None {
			r.free[g.Device] += sign * g.Reserve
			r.memory[g.Device] += sign * (g.Persist + g.Peak)
		}
	})
	for _, id := range nodes {
		workers += int64(r.holds(id))
	}
	return workers
}

// milli is what is free of devices that the shape may use, wherever it is.
func (r *room) milli() (milli int64) {
	for id := range r.nodes {
		if r.nodes[id].open {
			milli += r.milliOn(plan.NodeID(id))
		}
	}
	return milli
}

// milliOn is the same of one node.
func (r *room) milliOn(id plan.NodeID) (milli int64) {
	n := r.v.Node(id)
	if !r.anyModel && r.shape.Models&(1<<n.Model) == 0 || !r.v.InSet(r.shape, id) {
		return 0
	}
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		dev := r.v.Device(d)
		if dev.Status.Out() || dev.Memory < r.shape.Memory && !r.noMemory || r.shape.Share == 1000 && r.free[d] < 1000 {
			continue
		}
		milli += int64(min(r.free[d], 1000))
	}
	return milli
}
