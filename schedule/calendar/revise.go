package calendar

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Revise looks at every claim again, in order of rank, and returns the jobs whose
// claims it had to give up: the cluster can no longer hold the gang beside the claims
// of better rank whose end nobody knows. A claim stays where it is
//
//   - unless there is a strictly earlier place for it that no other claim is hurt by;
//   - unless a node of it is lost or cordoned or has got a window, or what runs there
//     takes longer than was expected, or a claim of better rank needs its room: then it
//     gets the earliest place beside the claims of better rank, be it later.
//
// One that has come due does not move any more for runs that take longer, since
// otherwise it could be put off for ever; its At then follows what is expected. One
// that drains moves only for an instant that is known.
func (c *Calendar) Revise(into []plan.JobID) []plan.JobID {
	for i := 0; i < len(c.claims); i++ {
		if !c.revise(i) {
			into = append(into, c.claims[i].Job)
			c.claims = slices.Delete(c.claims, i, i+1)
			c.changed()
			i--
		}
	}
	return into
}

func (c *Calendar) revise(i int) bool {
	cl := &c.claims[i]
	f := c.findingOf(cl)
	stands := cl.At > c.now && cl.Due > c.now && c.stands(f, i)
	lost := !stands && c.lost(cl)
	if !lost && cl.Due <= c.now {
		c.move(i, c.expected(i))
		return true
	}
	g := c.gangOf(cl.Job, cl.Workers, cl.Length)
	if !lost && (stands || cl.At == unit.Never || c.expected(i) == cl.At) {
		b := besideOf(c, cl.Job, len(c.claims), i, nil)
		if !c.mayBeSooner(f, &g, b) {
			return true
		}
		if sooner, ok := c.soonest(g, b, cl.At); ok {
			c.replace(i, sooner)
		}
		return true
	}
	b := besideOf(c, cl.Job, i, i, nil)
	next, ok := c.soonest(g, b, unit.Never)
	if !ok {
		next, ok = c.drain(g, b)
	}
	if ok {
		c.replace(i, next)
	}
	return ok
}

// replace gives a claim another place; what it was due at stays.
func (c *Calendar) replace(i int, by Claim) {
	by.Due = min(by.Due, c.claims[i].Due)
	c.claims[i] = by
	c.changed()
}

func (c *Calendar) move(i int, at unit.Time) {
	if c.claims[i].At != at {
		c.claims[i].At = at
		c.changed()
	}
}

// lost reports whether a claim can no longer count on one of its nodes.
func (c *Calendar) lost(cl *Claim) bool {
	return slices.ContainsFunc(cl.Parts, func(p Part) bool { return c.lostOn(cl, &p) })
}

func (c *Calendar) lostOn(cl *Claim, p *Part) bool {
	n := &c.nodes[p.Node]
	devices := n.whole
	for i := range n.releases {
		devices += n.releases[i].full + n.releases[i].partly
	}
	if !n.back || devices < p.Devices {
		return true
	}
	end := min(max(cl.At, c.now).Add(cl.Length), runsInto(c.v, c.windows, cl.Job))
	return slices.ContainsFunc(c.windows, func(w Window) bool {
		return w.Node == p.Node && w.To > c.now && w.From < end && (cl.Closed(c.now) || w.To > cl.At)
	})
}

// expected is the earliest instant, from that of the claim on, at which all its
// parts are free beside the claims of better rank.
func (c *Calendar) expected(i int) unit.Time {
	cl := &c.claims[i]
	at := c.now
	if !cl.Closed(c.now) {
		at = max(at, cl.At)
	}
	for settled := false; !settled && at != unit.Never; {
		settled = true
		for _, p := range cl.Parts {
			if next := when(c.timeline(p.Node, besideOf(c, cl.Job, i, i, nil)), p, at, cl.Length); next != at {
				at, settled = next, false
			}
			if at == unit.Never {
				break
			}
		}
	}
	return at
}
