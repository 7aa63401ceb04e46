// Package fit is the mechanism that placers share: filling nodes with workers in an order
// of the placer's choosing, on the index of free capacity, so that a placement costs what it takes
// and not the size of the cluster.
package fit

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// Order is the order in which shares take the devices of a node.
type Order int8

// The orders.
const (
	ByID     Order = iota
	Tightest       // the device with the least room that still fits
)

// Taker collects the slots of one candidate, each node at most once.
type Taker struct {
	v     plan.View
	need  allocate.Need
	left  int32
	slots []plan.Slot
}

// Take begins a candidate for a need.
func Take(v plan.View, need allocate.Need, into []plan.Slot) Taker {
	return Taker{v: v, need: need, left: need.Workers, slots: into}
}

// Fill takes as many workers as a node holds and are still wanted: of its wholly
// free devices, of its cores, or shares of its devices. It reports whether all are
// placed.
func (t *Taker) Fill(id plan.NodeID, order Order) bool {
	shape := t.need.Shape
	n := min(t.left, t.v.Holds(id, shape))
	if n <= 0 {
		return t.left == 0
	}
	t.left -= n
	if shape.Share == 1000 || shape.Devices == 0 {
		t.slots = append(t.slots, plan.Slot{Node: id, Device: plan.None, Workers: n})
		return t.left == 0
	}
	for device := plan.DeviceID(plan.None); n > 0; {
		device = t.after(id, device, order)
		take := min(n, t.v.Shares(device, shape))
		t.slots = append(t.slots, plan.Slot{Node: id, Device: device, Workers: take})
		n -= take
	}
	return t.left == 0
}

// after returns the device of a node that comes next in the order among those with
// room for a share; None begins.
func (t *Taker) after(id plan.NodeID, last plan.DeviceID, order Order) plan.DeviceID {
	n := t.v.Node(id)
	floor := int32(-1)
	if last != plan.None && order == Tightest {
		floor = t.v.Device(last).Free
	}
	best, room := plan.DeviceID(plan.None), int32(0)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		free := t.v.Device(d).Free
		behind := d > last && free >= floor || free > floor && order == Tightest
		if !behind || t.v.Shares(d, t.need.Shape) == 0 {
			continue
		}
		if order == ByID {
			return d
		}
		if best == plan.None || free < room {
			best, room = d, free
		}
	}
	return best
}

// Done returns the slots if all workers are placed.
func (t *Taker) Done() ([]plan.Slot, bool) { return t.slots, t.left == 0 && len(t.slots) > 0 }

// Left is how many workers are still to be placed.
func (t *Taker) Left() int32 { return t.left }

// Weigh adds free thousandths of devices and of cores, where so many cores weigh as
// much as one device; 0 counts devices alone.
func Weigh(devices, cores, coresPerDevice int64) int64 {
	if coresPerDevice == 0 {
		return devices
	}
	return devices*coresPerDevice + cores
}

// Leftover is the weight of what a node would have left behind so many workers.
// Cores count only for a shape that asks for them.
func Leftover(v plan.View, id plan.NodeID, shape *plan.Shape, workers int32, coresPerDevice int64) int64 {
	n := v.Node(id)
	devices, cores := int64(0), int64(0)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if dev := v.Device(d); !dev.Status.Out() {
			devices += int64(dev.Free)
		}
	}
	if shape.Devices > 0 {
		devices -= shape.Milli(workers)
	}
	if shape.CPU > 0 && coresPerDevice > 0 {
		cores = int64(n.FreeCPU) - int64(workers)*int64(shape.CPU)
	}
	return Weigh(devices, cores, coresPerDevice)
}

// First places a gang on the first nodes, by id, that have room, from a given one on.
func First(v plan.View, need allocate.Need, from plan.NodeID, into []plan.Slot) ([]plan.Slot, bool) {
	t := Take(v, need, into)
	EachNode(v, need.Shape, from, func(n plan.NodeID) bool { return t.Fill(n, ByID) })
	return t.Done()
}

// Nodes is the number of nodes of a placement in which the slots of a node stand
// together.
func Nodes(slots []plan.Slot) (nodes int) {
	for i := range slots {
		if i == 0 || slots[i].Node != slots[i-1].Node {
			nodes++
		}
	}
	return nodes
}
