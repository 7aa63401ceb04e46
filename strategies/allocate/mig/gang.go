package mig

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// gang is a candidate in the making: what it has taken of nodes and devices.
type gang struct {
	shape   *plan.Shape
	except  []plan.NodeID
	workers map[plan.NodeID]int32
	devices map[plan.DeviceID]cutting
}

// cutting is how a device is cut and which of its parts are taken; fixed is one that
// cannot be cut at this moment.
type cutting struct {
	model    int32
	geometry int16
	taken    uint64
	fixed    bool
}

func (g *gang) begin(shape *plan.Shape, except []plan.NodeID) {
	*g = gang{shape: shape, except: except, workers: map[plan.NodeID]int32{}, devices: map[plan.DeviceID]cutting{}}
}

// holds reports whether a node has the cores and host memory for one more worker.
func (g *gang) holds(v plan.View, id plan.NodeID) bool {
	n, more := v.Node(id), g.workers[id]+1
	return n.Status == plan.Up && v.Allows(g.shape, id) && !slices.Contains(g.except, id) &&
		(g.shape.PerNode == 0 || more <= g.shape.PerNode) && n.FreeCPU >= more*g.shape.CPU && n.FreeHost >= more*g.shape.Host
}

// cutting is how a device is cut with what the candidate has taken, and whether it
// can be used in parts.
func (g *gang) cutting(v plan.View, id plan.DeviceID) (cutting, bool) {
	if c, ok := g.devices[id]; ok {
		return c, true
	}
	d := v.Device(id)
	c, parts := cutting{geometry: d.Geometry, fixed: d.Status != plan.Steady}, true
	v.GrantsOn(id, func(grant plan.Grant) {
		switch {
		case v.Run(grant.Run).Status == plan.Stopping:
		case grant.Part == 0:
			parts = false // somebody has it whole, or shares it uncut
		default:
			c.taken |= 1 << (grant.Part - 1)
		}
	})
	return c, parts && !d.Status.Out() && d.Free > 0
}

// take puts one worker on a spot.
func (g *gang) take(v plan.View, c *allocate.Candidate, s *spot) {
	id := plan.DeviceID(s.device)
	now, _ := g.cutting(v, id)
	node := v.Device(id).Node
	geometries := v.Cluster().Models[v.Node(node).Model].Geometries
	will, taken := geometries[s.cut].Parts, uint64(1)<<s.part
	for i, part := range geometries[now.geometry].Parts {
		if now.taken&(1<<i) != 0 {
			taken |= 1 << slices.Index(will, part)
		}
	}
	g.devices[id] = cutting{geometry: s.cut, taken: taken, fixed: now.fixed}
	g.workers[node]++
	g.cut(v, c, id, s.cut)
	if i := slices.IndexFunc(c.Slots, func(slot plan.Slot) bool { return slot.Device == id }); i >= 0 {
		c.Slots[i].Workers++
		return
	}
	c.Slots = append(c.Slots, plan.Slot{Node: node, Device: id, Workers: 1})
}

// cut notes that a device has to have a geometry, unless it has it.
func (g *gang) cut(v plan.View, c *allocate.Candidate, id plan.DeviceID, geometry int16) {
	c.Cut = slices.DeleteFunc(c.Cut, func(cut allocate.Cut) bool { return cut.Device == id })
	if v.Device(id).Geometry != geometry {
		c.Cut = append(c.Cut, allocate.Cut{Device: id, Geometry: geometry})
	}
}

// whole adds one worker on whole devices of the first node that has them, idle cut
// ones included, which are then made whole.
func (p *Placer) whole(v plan.View, c *allocate.Candidate) bool {
	g := &p.gang
	for n := range plan.NodeID(v.Nodes()) {
		node := v.Node(n)
		if p.models[node.Model].table == nil || !g.holds(v, n) {
			continue
		}
		var on []plan.DeviceID
		for d := node.First; d < node.First+plan.DeviceID(node.Count) && len(on) < int(g.shape.Devices); d++ {
			_, used := g.devices[d]
			dev := v.Device(d)
			if !used && dev.Free == 1000 && !dev.Status.Out() && dev.Memory >= g.shape.Memory && (dev.Geometry == 0 || dev.Status == plan.Steady) {
				on = append(on, d)
			}
		}
		if len(on) < int(g.shape.Devices) || len(on) == 0 {
			continue
		}
		for _, d := range on {
			g.devices[d] = cutting{}
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
	return false
}
