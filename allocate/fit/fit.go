// Package fit is the mechanism that placers share: filling nodes with workers in
// an order of the placer's choosing, on the index of free capacity, so that a
// placement costs what it takes and not the size of the cluster.
package fit

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// Holds is how many workers of a shape a node could take at this moment.
func Holds(v plan.View, id plan.NodeID, shape *plan.Shape) int32 {
	n := v.Node(id)
	if n.Status != plan.Up || shape.Models&(1<<n.Model) == 0 {
		return 0
	}
	most := int32(1 << 30)
	if shape.Devices > 0 && shape.Share == 1000 {
		most = n.FreeDevices / shape.Devices
	}
	if shape.CPU > 0 {
		most = min(most, n.FreeCPU/shape.CPU)
	}
	if shape.Host > 0 {
		most = min(most, n.FreeHost/shape.Host)
	}
	return most
}

// FirstDevice returns the lowest device of a node with room for one share, wholly
// free ones included, or None.
func FirstDevice(v plan.View, id plan.NodeID, shape *plan.Shape) plan.DeviceID {
	n := v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if Room(v, d, shape) {
			return d
		}
	}
	return plan.None
}

// Room reports whether a device has room for one worker's share.
func Room(v plan.View, id plan.DeviceID, shape *plan.Shape) bool {
	d := v.Device(id)
	return d.Status != plan.Lost && d.Free >= shape.Share && (shape.Memory == 0 || d.FreeMemory >= shape.Memory)
}

// Taker collects the slots of one candidate.
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

// Node takes as many workers as it can, and are still wanted, of a node's wholly
// free devices, or of its cores for CPU-only work. It reports whether all are placed.
func (t *Taker) Node(id plan.NodeID) bool {
	if n := min(t.left, Holds(t.v, id, t.need.Shape)); n > 0 {
		t.slots = append(t.slots, plan.Slot{Node: id, Device: plan.None, Workers: n})
		t.left -= n
	}
	return t.left == 0
}

// Device takes one worker's share of a device that has room for it.
func (t *Taker) Device(id plan.DeviceID) bool {
	t.slots = append(t.slots, plan.Slot{Node: t.v.Device(id).Node, Device: id, Workers: 1})
	t.left--
	return t.left == 0
}

// Fill takes what a node has for the need, whatever it is made of: wholly free
// devices, cores, or shares of its devices in order of their ids.
func (t *Taker) Fill(id plan.NodeID) bool {
	if t.need.Shape.Share == 1000 || t.need.Shape.Devices == 0 {
		return t.Node(id)
	}
	n := t.v.Node(id)
	if n.Status != plan.Up || Holds(t.v, id, t.need.Shape) == 0 {
		return false
	}
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		for room := t.v.Device(d).Free; Room(t.v, d, t.need.Shape) && room >= t.need.Shape.Share; room -= t.need.Shape.Share {
			if t.Device(d) {
				return true
			}
			if t.need.Shape.Memory > 0 || t.need.Shape.CPU > 0 || t.need.Shape.Host > 0 {
				break // one share per device where more than compute is counted
			}
		}
	}
	return false
}

// EachNode calls f, in order of id, for the nodes from the given one on that may
// have room for a worker of the shape, until f returns true.
func EachNode(v plan.View, shape *plan.Shape, from plan.NodeID, f func(plan.NodeID) bool) {
	room := v.Room()
	for n := from; ; n++ {
		whole, part := room.NextAny(shape.Models, int(shape.Devices), n), plan.NodeID(plan.None)
		if shape.Share < 1000 {
			for m := range room.Models() {
				if shape.Models&(1<<m) != 0 {
					if p := room.NextPartial(m, n); p != plan.None && (part == plan.None || p < part) {
						part = p
					}
				}
			}
		}
		switch {
		case whole == plan.None && part == plan.None:
			return
		case whole == plan.None || part != plan.None && part < whole:
			n = part
		default:
			n = whole
		}
		if f(n) {
			return
		}
	}
}

// Done returns the slots if all workers are placed.
func (t *Taker) Done() ([]plan.Slot, bool) { return t.slots, t.left == 0 }

// Left is how many workers are still to be placed.
func (t *Taker) Left() int32 { return t.left }
