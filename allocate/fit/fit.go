// Package fit is the mechanism that placers share: how much of a gang a node or a
// device holds, and filling nodes with workers in an order of the placer's
// choosing, on the index of free capacity, so that a placement costs what it takes
// and not the size of the cluster.
package fit

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

// Holds is how many workers of a shape a node could take at this moment.
func Holds(v plan.View, id plan.NodeID, shape *plan.Shape) int32 {
	n := v.Node(id)
	if n.Status != plan.Up || !v.Allows(shape, id) {
		return 0
	}
	most := int32(math.MaxInt32)
	if shape.PerNode > 0 {
		most = shape.PerNode
	}
	if shape.CPU > 0 {
		most = min(most, n.FreeCPU/shape.CPU)
	}
	if shape.Host > 0 {
		most = min(most, n.FreeHost/shape.Host)
	}
	switch {
	case shape.Devices == 0 || most <= 0:
		return max(0, most)
	case shape.Share == 1000 && n.FreeDevices == 0:
		return 0
	case shape.Share == 1000:
		if v.Device(n.First).Memory < shape.Memory {
			return 0
		}
		return min(most, n.FreeDevices/shape.Devices)
	}
	shares := int32(0)
	for d := n.First; d < n.First+plan.DeviceID(n.Count) && shares < most; d++ {
		shares += Shares(v, d, shape)
	}
	return min(most, shares)
}

// Shares is how many workers of a shape that asks for a part of a device this one
// has room for.
func Shares(v plan.View, id plan.DeviceID, shape *plan.Shape) int32 {
	d := v.Device(id)
	if d.Status.Out() || d.Free < shape.Share {
		return 0
	}
	most := d.Free / shape.Share
	if shape.Memory > 0 {
		most = min(most, d.FreeMemory/shape.Memory)
	}
	if cut := parts(v, &d); len(cut) > 0 {
		most = min(most, partsFor(v, id, cut, cluster.Part{Milli: unit.Milli(shape.Share), Memory: unit.MiB(shape.Memory)}))
	}
	return max(0, most)
}

// Whole reports whether a device is wholly free, healthy and undivided.
func Whole(d *plan.Device) bool {
	return d.Free == 1000 && !d.Status.Out() && d.Geometry == 0
}

// parts are the pieces a device is cut into; none where it is undivided.
func parts(v plan.View, d *plan.Device) []cluster.Part {
	if d.Geometry == 0 {
		return nil
	}
	return v.Cluster().Models[v.Node(d.Node).Model].Geometries[d.Geometry].Parts
}

// partsFor is how many more workers a cut device has pieces for, where each needs
// one of its own, the smallest that holds it.
func partsFor(v plan.View, id plan.DeviceID, cut []cluster.Part, worker cluster.Part) int32 {
	var want []cluster.Part
	v.GrantsOn(id, func(g plan.Grant) {
		if v.Run(g.Run).Status != plan.Stopping {
			want = append(want, cluster.Part{Milli: unit.Milli(g.Reserve), Memory: unit.MiB(g.Persist + g.Peak)})
		}
	})
	for n := int32(0); ; n++ {
		want = append(want, worker)
		if !partsHold(slices.Clone(cut), slices.Clone(want)) {
			return n
		}
	}
}

func partsHold(cut, want []cluster.Part) bool {
	slices.SortFunc(cut, smaller)
	slices.SortFunc(want, smaller)
	for _, w := range want {
		i := slices.IndexFunc(cut, func(p cluster.Part) bool { return p.Milli >= w.Milli && p.Memory >= w.Memory })
		if i < 0 {
			return false
		}
		cut = slices.Delete(cut, i, i+1)
	}
	return true
}

func smaller(a, b cluster.Part) int {
	return cmp.Or(cmp.Compare(a.Milli, b.Milli), cmp.Compare(a.Memory, b.Memory))
}

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
	n := min(t.left, Holds(t.v, id, shape))
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
		take := min(n, Shares(t.v, device, shape))
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
		if !behind || Shares(t.v, d, t.need.Shape) == 0 {
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

// Capacity is how many workers of a shape a node would hold if it were idle and
// undivided.
func Capacity(c *cluster.Cluster, node int32, shape *plan.Shape) int32 {
	n := &c.Nodes[node]
	if shape.Models&(1<<n.Model) == 0 {
		return 0
	}
	most := int32(math.MaxInt32)
	if shape.CPU > 0 {
		most = min(most, int32(n.CPU)/shape.CPU)
	}
	if shape.Host > 0 {
		most = min(most, int32(n.Memory)/shape.Host)
	}
	if shape.Devices == 0 {
		return most
	}
	memory, perDevice := int32(c.Models[n.Model].Memory), 1000/shape.Share
	if shape.Memory > 0 {
		perDevice = min(perDevice, memory/shape.Memory)
	}
	if shape.Share == 1000 {
		return min(most, n.Count*perDevice/shape.Devices)
	}
	return min(most, n.Count*perDevice)
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
