package explain

import (
	"slices"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/obstacle"
)

// room is what nodes have free for a shape, as it is or as it is imagined.
type room struct {
	v       plan.View
	shape   *plan.Shape
	imagine *plan.Imagined // of a copy
}

func newRoom(v plan.View, shape *plan.Shape) *room { return &room{v: v, shape: shape} }

// copy is a room in which something may be imagined.
func (r *room) copy() *room {
	i := r.v.Imagine()
	return &room{i.View(), r.shape, i}
}

// emptied is the room if nothing ran.
func emptied(v plan.View, shape *plan.Shape) *room {
	r := newRoom(v, shape).copy()
	r.imagine.Idle()
	return r
}

// open lets the nodes take workers whose status is one of those.
func (r *room) open(statuses ...plan.NodeStatus) *room {
	r.imagine.Open(statuses...)
	return r
}

// keep takes out what is held for others.
func (r *room) keep(holds []plan.Hold) *room {
	r.imagine.Keep(holds)
	return r
}

// mended is the room if no device were cut.
func (r *room) mended() *room {
	r = r.copy()
	r.imagine.Mend()
	return r
}

// without is the same room for one that asks for less.
func (r *room) without(less func(s *plan.Shape)) *room {
	c, shape := *r, *r.shape
	less(&shape)
	c.shape = &shape
	return &c
}

// total is how many workers there is room for, on all nodes.
func (r *room) total() int64 { return obstacle.Workers(r.v, r.shape) }

// holds is how many workers a node has room for.
func (r *room) holds(id plan.NodeID) int32 { return r.v.Holds(id, r.shape) }

// release lets a run end, or brings it back. It returns the change in how many workers
// there is room for.
func (r *room) release(run plan.RunID, ends bool) (workers int64) {
	var nodes []plan.NodeID
	r.v.GrantsOf(run, func(g plan.Grant) {
		if len(nodes) == 0 || nodes[len(nodes)-1] != g.Node && !slices.Contains(nodes, g.Node) {
			nodes = append(nodes, g.Node)
		}
	})
	for _, id := range nodes {
		workers -= int64(r.holds(id))
	}
	r.imagine.End(run, ends)
	for _, id := range nodes {
		workers += int64(r.holds(id))
	}
	return workers
}

// milli is what is free of devices that the shape may use, wherever it is.
func (r *room) milli() (milli int64) {
	for id := range plan.NodeID(r.v.Nodes()) {
		if r.v.Node(id).Status == plan.Up {
			milli += r.milliOn(id)
		}
	}
	return milli
}

// milliOn is the same of one node.
func (r *room) milliOn(id plan.NodeID) (milli int64) {
	n := r.v.Node(id)
	if !r.v.Allows(r.shape, id) {
		return 0
	}
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		dev := r.v.Device(d)
		if dev.Status.Out() || dev.Memory < r.shape.Memory || r.shape.Share == 1000 && dev.Free < 1000 {
			continue
		}
		milli += int64(dev.Free)
	}
	return milli
}
