package calendar

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Hold is what is to be kept free of a node while a placement is tried.
type Hold = plan.Hold

// Holds appends, by node, what must be kept free from a job that is expected to end
// at an instant, so that no claim but its own is put off and it runs into no window:
// of what every node has free, all but the least that is left over from now to then.
//
// A job whose own claim has come due goes before claims ranked below its own, should
// both need the same room.
func (c *Calendar) Holds(job plan.JobID, until unit.Time, into []Hold) []Hold {
	c.index()
	b := beside{len(c.claims), c.Find(job)}
	var parts []Part
	if b.except >= 0 && (c.claims[b.except].At <= c.now || c.claims[b.except].Closed(c.now)) {
		parts = c.claims[b.except].Parts
	}
	shape := c.v.Shape(job)
	shares := shape.Devices > 0 && shape.Share < 1000
	for i := range c.entries {
		id := c.entries[i].node
		if i > 0 && c.entries[i-1].node == id || !c.nodes[id].up {
			continue
		}
		for len(parts) > 0 && parts[0].Node < id {
			parts = parts[1:]
		}
		own := Part{Node: id}
		if len(parts) > 0 && parts[0].Node == id {
			own = parts[0]
		}
		h := c.holdOn(own, b, until, shares)
		if own != (Part{Node: id}) && !c.leaves(h, own) {
			first := c.holdOn(own, beside{b.except, b.except}, until, shares)
			n := &c.nodes[id]
			h.Devices = max(first.Devices, min(h.Devices, n.whole-own.Devices))
			h.CPU = max(first.CPU, min(h.CPU, n.cpu-own.CPU))
			h.Host = max(first.Host, min(h.Host, n.host-own.Host))
			h.Shared = first.Shared
		}
		if h != (Hold{Node: id}) {
			into = append(into, h)
		}
	}
	return into
}

// HoldsOfWindows appends what must be kept free so that a job runs into no window, whatever
// claims there are.
func (c *Calendar) HoldsOfWindows(job plan.JobID, until unit.Time, into []Hold) []Hold {
	c.index()
	shape := c.v.Shape(job)
	for i := range c.entries {
		id := c.entries[i].node
		if i > 0 && c.entries[i-1].node == id || !c.nodes[id].up {
			continue
		}
		if h := c.holdOn(Part{Node: id}, beside{0, -1}, until, shape.Devices > 0 && shape.Share < 1000); h != (Hold{Node: id}) {
			into = append(into, h)
		}
	}
	return into
}

// leaves reports whether a hold leaves a job its own part.
func (c *Calendar) leaves(h Hold, own Part) bool {
	n := &c.nodes[h.Node]
	return n.whole-h.Devices >= own.Devices && n.cpu-h.CPU >= own.CPU && n.host-h.Host >= own.Host
}

// holdOn is what is to be held on one node.
func (c *Calendar) holdOn(own Part, b beside, until unit.Time, shares bool) Hold {
	n, h := &c.nodes[own.Node], Hold{Node: own.Node}
	full, devices, cpu, host := int64(all), int64(all), int64(all), int64(all)
	for _, s := range c.timeline(own.Node, b) {
		if s.at >= until {
			break
		}
		full, devices = min(full, s.full), min(devices, s.devices())
		cpu, host = min(cpu, s.cpu), min(host, s.host)
	}
	h.CPU, h.Host = short(n.cpu, cpu), short(n.host, host)
	h.Devices = short(n.whole, devices)
	// Shares go to devices that are partly free: rather than close those, more whole
	// ones are held, if there are as many.
	if shares && full < int64(n.whole) {
		if full >= int64(own.Devices) {
			h.Devices = short(n.whole, full)
		} else {
			h.Shared = true
		}
	}
	return h
}

// short is how much of what is free must stay free where so much is left over.
func short(free int32, over int64) int32 {
	return int32(max(0, min(int64(free), int64(free)-over)))
}
