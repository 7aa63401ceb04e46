package calendar

import (
	"slices"

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
	return c.HoldsWithout(nil, job, until, into)
}

// HoldsWithout is Holds as if the claims of some ranks, in ascending order, were not there.
func (c *Calendar) HoldsWithout(without []int, job plan.JobID, until unit.Time, into []Hold) []Hold {
	c.index()
	b := besideOf(c, job, len(c.claims), c.Find(job), without)
	shape := c.v.Shape(job)
	shares := shape.Devices > 0 && shape.Share < 1000
	if b.except < 0 {
		return c.holdsOfOthers(b, until, shares, into)
	}
	// Where its own claim is not, it is held back from what all others are.
	claim, others := &c.claims[b.except], c.lows(beside{b.limit, -1, without, b.windows})
	due, claimed := claim.At <= c.now || claim.Closed(c.now), claim.Parts
	for _, on := range others.nodes {
		id := on.node
		for len(claimed) > 0 && claimed[0].Node < id {
			claimed = claimed[1:]
		}
		if len(claimed) == 0 || claimed[0].Node != id {
			if h := c.shortIn(others, on, until, shares); h != (Hold{Node: id}) {
				into = append(into, h)
			}
			continue
		}
		own := Part{Node: id}
		if due {
			own = claimed[0]
		}
		h := c.holdOn(own, b, until, shares)
		if own != (Part{Node: id}) && !c.nodes[id].leaves(h, own) {
			first := c.holdOn(own, beside{b.except, b.except, without, b.windows}, until, shares)
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
	shape, b := c.v.Shape(job), besideOf(c, job, 0, -1, nil)
	for i := range c.entries {
		id := c.entries[i].node
		if i > 0 && c.entries[i-1].node == id || !c.nodes[id].up {
			continue
		}
		if h := c.holdOn(Part{Node: id}, b, until, shape.Devices > 0 && shape.Share < 1000); h != (Hold{Node: id}) {
			into = append(into, h)
		}
	}
	return into
}

// Into is from when on a window that begins keeps nothing from a job: the job runs into it and is stopped as it begins, as it
// saves its work or is tried again. Before then it would not have run for as long as its start and its stop cost. It is
// Never for a job whose work would be lost.
func Into(v plan.View, job plan.JobID) unit.Time {
	j := v.Job(job)
	if !j.Checkpoint.Saves() && j.Retries == 0 {
		return unit.Never
	}
	return v.Now().Add(max(unit.Minute, j.Checkpoint.Load+j.Checkpoint.Save))
}

// runsInto is when the first window begins that a job runs into; Never is none.
func runsInto(v plan.View, windows []Window, job plan.JobID) unit.Time {
	first := unit.Never
	if len(windows) == 0 {
		return first
	}
	from := Into(v, job)
	for i := range windows {
		if w := windows[i].From; w >= from {
			first = min(first, w)
		}
	}
	return first
}

// leaves reports whether a hold leaves a job its own part.
func (n *node) leaves(h Hold, own Part) bool {
	return n.whole-h.Devices >= own.Devices && n.cpu-h.CPU >= own.CPU && n.host-h.Host >= own.Host
}

// holdOn is what is to be held on one node.
func (c *Calendar) holdOn(own Part, b beside, until unit.Time, shares bool) Hold {
	low := step{full: all, cpu: all, host: all}
	for _, s := range c.timeline(own.Node, b) {
		if s.at >= until {
			break
		}
		low.lower(&s)
	}
	return c.short(own, &low, shares)
}

// lower makes a step the least of itself and another: of wholly free devices and of all
// devices apart, since they may be at their least at different times.
func (s *step) lower(o *step) {
	devices := min(s.devices(), o.devices())
	s.full = min(s.full, o.full)
	s.partly = devices - s.full
	s.cpu, s.host = min(s.cpu, o.cpu), min(s.host, o.host)
}

// profile is what is left over at the least from now until any instant, of the nodes on
// which something stands beside which claims count: what most who ask share.
type profile struct {
	without []int
	windows unit.Time
	made    bool
	lows    []step
	nodes   []stretch
}

// stretch is the lows of a node, the first of which begins now.
type stretch struct {
	node        plan.NodeID
	first, last int32
}

// lows returns the profile beside all claims but some, made when it is first asked for
// after a change. There are two of each: those without one of the two sets differ from job to job
// where some are within a guarantee, and some jobs run into windows.
func (c *Calendar) lows(b beside) *profile {
	which := min(1, len(b.without))
	if b.windows < unit.Never {
		which += 2
	}
	p := &c.profiles[which]
	if p.made && p.windows == b.windows && slices.Equal(p.without, b.without) {
		return p
	}
	p.windows = b.windows
	p.made, p.without, p.lows, p.nodes = true, append(p.without[:0], b.without...), p.lows[:0], p.nodes[:0]
	for i := range c.entries {
		id := c.entries[i].node
		if i > 0 && c.entries[i-1].node == id || !c.nodes[id].up {
			continue
		}
		first := len(p.lows)
		for _, s := range c.timeline(id, b) {
			low := s
			if n := len(p.lows); n > first {
				low = p.lows[n-1]
				low.lower(&s)
				if low.same(&p.lows[n-1]) {
					continue
				}
				low.at = s.at
			}
			p.lows = append(p.lows, low)
		}
		p.nodes = append(p.nodes, stretch{id, int32(first), int32(len(p.lows))})
	}
	return p
}

func (s *step) same(o *step) bool {
	return s.full == o.full && s.partly == o.partly && s.cpu == o.cpu && s.host == o.host
}

// holdsOfOthers is what is held back from jobs that have no claim themselves.
func (c *Calendar) holdsOfOthers(b beside, until unit.Time, shares bool, into []Hold) []Hold {
	p := c.lows(b)
	for _, s := range p.nodes {
		if h := c.shortIn(p, s, until, shares); h != (Hold{Node: s.node}) {
			into = append(into, h)
		}
	}
	return into
}

// shortIn is what is to be held on a node of a profile until an instant.
func (c *Calendar) shortIn(p *profile, s stretch, until unit.Time, shares bool) Hold {
	low := step{full: all, cpu: all, host: all}
	for i := s.last - 1; i >= s.first; i-- {
		if p.lows[i].at < until {
			low = p.lows[i]
			break
		}
	}
	return c.short(Part{Node: s.node}, &low, shares)
}

// short is what is to be held on a node of which so much is left over at the least.
func (c *Calendar) short(own Part, low *step, shares bool) Hold {
	n, h := &c.nodes[own.Node], Hold{Node: own.Node}
	h.CPU, h.Host = missing(n.cpu, low.cpu), missing(n.host, low.host)
	h.Devices = missing(n.whole, low.devices())
	// Shares go to devices that are partly free: rather than close those, more whole
	// ones are held, if there are as many.
	if shares && low.full < int64(n.whole) {
		if low.full >= int64(own.Devices) {
			h.Devices = missing(n.whole, low.full)
		} else {
			h.Shared = true
		}
	}
	return h
}

// missing is how much of what is free must stay free where so much is left over.
func missing(free int32, over int64) int32 {
	return int32(max(0, min(int64(free), int64(free)-over)))
}
