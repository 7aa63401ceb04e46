package fit

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// Parts is a candidate in the making on devices that may be cut: what it has taken of
// nodes and devices, and how the devices have to be cut for it.
type Parts struct {
	Shape   *plan.Shape
	except  []plan.NodeID
	workers map[plan.NodeID]int32
	devices map[plan.DeviceID]Cutting
}

// Cutting is how a device of a model is cut and which of its parts are taken; Fixed is one
// that cannot be cut at this moment.
type Cutting struct {
	Model    int32
	Geometry int16
	Taken    uint64
	Fixed    bool
}

// Begin starts a candidate that keeps off the excepted nodes.
func (g *Parts) Begin(shape *plan.Shape, except []plan.NodeID) {
	*g = Parts{Shape: shape, except: except, workers: map[plan.NodeID]int32{}, devices: map[plan.DeviceID]Cutting{}}
}

// Holds reports whether a node has the cores and host memory for one more worker.
func (g *Parts) Holds(v plan.View, id plan.NodeID) bool {
	n, more := v.Node(id), g.workers[id]+1
	return n.Status == plan.Up && v.Allows(g.Shape, id) && !slices.Contains(g.except, id) &&
		(g.Shape.PerNode == 0 || more <= g.Shape.PerNode) && n.FreeCPU >= more*g.Shape.CPU && n.FreeHost >= more*g.Shape.Host
}

// Of is how a device is cut with what the candidate has taken, and whether it
// can be used in parts.
func (g *Parts) Of(v plan.View, id plan.DeviceID) (Cutting, bool) {
	if c, ok := g.devices[id]; ok {
		return c, true
	}
	d := v.Device(id)
	c, parts := Cutting{Model: v.Node(d.Node).Model, Geometry: d.Geometry, Fixed: d.Status != plan.Steady}, true
	v.GrantsOn(id, func(grant plan.Grant) {
		switch {
		case v.Run(grant.Run).Status == plan.Stopping:
		case grant.Part == 0:
			parts = false // somebody has it whole, or shares it uncut
		default:
			c.Taken |= 1 << (grant.Part - 1)
		}
	})
	return c, parts && !d.Status.Out() && d.Free > 0
}

// Take puts one worker on a part of a device, which is to have a geometry for it.
func (g *Parts) Take(v plan.View, c *allocate.Candidate, id plan.DeviceID, geometry int16, part int) {
	now, _ := g.Of(v, id)
	node, geometries := v.Device(id).Node, v.Cluster().Models[now.Model].Geometries
	will, taken := geometries[geometry].Parts, uint64(1)<<part
	for i, p := range geometries[now.Geometry].Parts {
		if now.Taken&(1<<i) != 0 {
			taken |= 1 << slices.Index(will, p)
		}
	}
	g.devices[id] = Cutting{Model: now.Model, Geometry: geometry, Taken: taken, Fixed: now.Fixed}
	g.workers[node]++
	g.cut(v, c, id, geometry)
	if i := slices.IndexFunc(c.Slots, func(slot plan.Slot) bool { return slot.Device == id }); i >= 0 {
		c.Slots[i].Workers++
		return
	}
	c.Slots = append(c.Slots, plan.Slot{Node: node, Device: id, Workers: 1})
}

// cut notes that a device has to have a geometry, unless it has it.
func (g *Parts) cut(v plan.View, c *allocate.Candidate, id plan.DeviceID, geometry int16) {
	c.Cut = slices.DeleteFunc(c.Cut, func(cut allocate.Cut) bool { return cut.Device == id })
	if v.Device(id).Geometry != geometry {
		c.Cut = append(c.Cut, allocate.Cut{Device: id, Geometry: geometry})
	}
}

// TakeWhole puts one worker on whole devices of a node, idle cut ones included, which are
// then made whole. It reports whether there are enough of them.
func (g *Parts) TakeWhole(v plan.View, c *allocate.Candidate, n plan.NodeID) bool {
	node := v.Node(n)
	var on []plan.DeviceID
	for d := node.First; d < node.First+plan.DeviceID(node.Count) && len(on) < int(g.Shape.Devices); d++ {
		_, used := g.devices[d]
		dev := v.Device(d)
		if !used && dev.Free == 1000 && !dev.Status.Out() && dev.Memory >= g.Shape.Memory && (dev.Geometry == 0 || dev.Status == plan.Steady) {
			on = append(on, d)
		}
	}
	if len(on) < int(g.Shape.Devices) || len(on) == 0 {
		return false
	}
	for _, d := range on {
		g.devices[d] = Cutting{}
		g.cut(v, c, d, 0)
	}
	g.workers[n]++
	if i := slices.IndexFunc(c.Slots, func(slot plan.Slot) bool { return slot.Node == n }); i >= 0 {
		c.Slots[i].Workers++
		c.Slots[i].On = append(c.Slots[i].On, on...)
		return true
	}
	c.Slots = append(c.Slots, plan.Slot{Node: n, Device: plan.None, Workers: 1, On: on})
	return true
}
