package calendar

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/mechanism/heap"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// gang is who a place is looked for.
type gang struct {
	job     plan.JobID
	workers int32
	length  unit.Duration
	shape   *plan.Shape
}

// search is the memory that looking for a place takes, used again for the next.
type search struct {
	offers []offer
	enough heap.Heap[unit.Time] // from when on workers can be had, the latest on top
	hold   []int32              // by node: workers it could take at the instant that is looked at
	since  []unit.Time          // by node: since when it could take so many
	order  []offer
	drains []drain
}

// gangOf is a job with what it asks for, of the models that it may have.
func (c *Calendar) gangOf(job plan.JobID, workers int32, length unit.Duration) gang {
	shape := c.v.Shape(job)
	if c.May != nil && shape.Devices > 0 {
		if models := c.May(c.v, job, shape.Models, workers); models != shape.Models {
			narrow := *shape
			narrow.Models, shape = models, &narrow
		}
	}
	return gang{job, workers, length, shape}
}

// offer is how many workers a node could take from an instant on.
type offer struct {
	at      unit.Time
	node    plan.NodeID
	workers int32
}

// Earliest finds the earliest instant at which a gang fits for its whole length
// beside all other claims and windows, by the expected ends of what runs, and on
// which nodes: as few as may be, and of equals those that come free last, so that
// there is room to fill in elsewhere. Work that asks for shares claims whole devices
// for them.
//
// If no end that is known is enough, it chooses what to drain: the nodes on which
// the fewest runs of unknown end are in the way, the oldest first, and At is Never.
// There is no claim if an empty cluster could not hold the gang beside the other
// claims and windows that have no end.
//
// A claim for this very instant is to be tried at once: with its own room left open
// to it a job of shares may find a place that it did not find before.
func (c *Calendar) Earliest(job plan.JobID, workers int32, length unit.Duration) (Claim, bool) {
	g := c.gangOf(job, workers, length)
	b := besideOf(c, job, len(c.claims), c.Find(job), nil)
	if claim, ok := c.soonest(g, b, unit.Never); ok {
		return claim, true
	}
	return c.drain(g, b)
}

// soonest is the earliest claim before a given instant.
func (c *Calendar) soonest(g gang, b beside, before unit.Time) (Claim, bool) {
	if before != unit.Never && c.most(&g, before) < g.workers {
		return Claim{}, false
	}
	c.index()
	c.offers, c.enough = c.offers[:0], heap.Heap[unit.Time]{Items: c.enough.Items[:0], Before: later}
	c.hold, c.since = slices.Grow(c.hold[:0], len(c.nodes))[:len(c.nodes)], slices.Grow(c.since[:0], len(c.nodes))[:len(c.nodes)]
	for id := range c.nodes {
		c.hold[id], c.since[id] = 0, c.now
		if n := len(c.offers); c.takes(plan.NodeID(id), &g) && c.offer(plan.NodeID(id), &g, b, before) {
			c.count(&g, c.offers[n:])
		}
		if int32(len(c.enough.Items)) == g.workers {
			before = min(before, c.enough.Items[0]+1) // the nodes looked at so far hold the gang by then
		}
	}
	slices.SortFunc(c.offers, func(x, y offer) int { return cmp.Compare(x.at, y.at) })
	total := int64(0)
	for i, o := range c.offers {
		total += int64(o.workers - c.hold[o.node])
		if o.workers > c.hold[o.node] {
			c.since[o.node] = o.at
		}
		c.hold[o.node] = o.workers
		if total >= int64(g.workers) && (i+1 == len(c.offers) || c.offers[i+1].at > o.at) {
			return c.choose(g, o.at), true
		}
	}
	return Claim{}, false
}

// most is how many workers of a gang all nodes could take before an instant if nothing were
// claimed: no more can be had, and where that is too few no node has to be looked at in time.
func (c *Calendar) most(g *gang, before unit.Time) (total int32) {
	for id := range c.nodes {
		if !c.takes(plan.NodeID(id), g) {
			continue
		}
		n := &c.nodes[id]
		has := step{full: int64(n.whole), cpu: int64(n.cpu), host: int64(n.host)}
		for i := range n.releases {
			r := &n.releases[i]
			if r.at >= before {
				break
			}
			has.release(r)
		}
		if total += c.workers(plan.NodeID(id), g, has); total >= g.workers {
			break
		}
	}
	return total
}

// takes reports whether a node may have workers of the gang at all.
func (c *Calendar) takes(id plan.NodeID, g *gang) bool {
	n := &c.nodes[id]
	return n.back && c.v.Allows(g.shape, id) && (g.shape.Devices == 0 || n.memory >= g.shape.Memory)
}

// workers is how many workers of the gang go into what a node has.
func (c *Calendar) workers(id plan.NodeID, g *gang, has step) int32 {
	if has.shut() {
		return 0
	}
	return min(g.workers, g.shape.Workers(has.devices(), c.nodes[id].memory, has.cpu, has.host))
}

// offer lists from when on a node could take how many workers for the whole length, and reports
// whether these are ever more.
func (c *Calendar) offer(id plan.NodeID, g *gang, b beside, before unit.Time) (rises bool) {
	last := int32(0)
	put := func(at unit.Time, workers int32) {
		c.offers = append(c.offers, offer{at, id, workers})
	}
	if n := &c.nodes[id]; n.first == n.last { // nothing stands there: it has what runs leave
		has := step{full: int64(n.whole), cpu: int64(n.cpu), host: int64(n.host)}
		for i, at := 0, c.now; at < before; i++ {
			if w := c.workers(id, g, has); w != last {
				put(at, w)
				last = w
			}
			if last == g.workers || i == len(n.releases) || n.releases[i].at == unit.Never {
				break
			}
			at = n.releases[i].at
			has.release(&n.releases[i])
		}
		return true
	}
	steps := c.timeline(id, b)
	falls := slices.ContainsFunc(steps, func(s step) bool { return s.falls })
	if !falls {
		for i := 0; i < len(steps) && steps[i].at < before; i++ {
			if w := c.workers(id, g, steps[i]); w != last {
				put(steps[i].at, w)
				last = w
			}
		}
		return true
	}
	from := func(at unit.Time) {
		if at >= c.now && at < before {
			put(at, c.workers(id, g, least(steps, at, at.Add(g.length))))
		}
	}
	for i := range steps {
		from(steps[i].at)
		if steps[i].falls && g.length != unit.Forever {
			from(steps[i].at.Add(1 - g.length)) // what starts then is the first to run into it
		}
	}
	return false
}

// count keeps, of the instants from which on workers of a gang can be had, as many as it has workers, the
// soonest. It is told of one node after the other, on which there are ever more.
func (c *Calendar) count(g *gang, offers []offer) {
	last := int32(0)
	for _, o := range offers {
		for ; last < o.workers; last++ {
			if int32(len(c.enough.Items)) < g.workers {
				c.enough.Push(o.at)
			} else if o.at < c.enough.Items[0] {
				c.enough.Replace(o.at)
			} else {
				return // what comes later is no sooner
			}
		}
	}
}

func later(a, b *unit.Time) bool { return *a > *b }

// choose takes the nodes for a gang from what they could take at an instant: the
// fullest until one holds the rest, and then the tightest that does.
func (c *Calendar) choose(g gang, at unit.Time) Claim {
	c.order = c.order[:0]
	for id, w := range c.hold {
		if w > 0 {
			c.order = append(c.order, offer{c.since[id], plan.NodeID(id), w})
		}
	}
	slices.SortFunc(c.order, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.workers, a.workers), cmp.Compare(b.at, a.at), cmp.Compare(a.node, b.node))
	})
	claim := Claim{Job: g.job, Workers: g.workers, At: at, Due: at.Add(c.Slack), Length: g.length}
	rest := g.workers
	for i := range c.order {
		o := c.order[i]
		if o.workers >= rest {
			tight := i
			for k := i; k < len(c.order) && c.order[k].workers >= rest; k++ {
				if c.order[k].workers < c.order[tight].workers {
					tight = k
				}
			}
			o = c.order[tight]
		}
		n := min(rest, o.workers)
		claim.Parts = append(claim.Parts, c.part(o.node, g.shape, n))
		if rest -= n; rest == 0 {
			break
		}
	}
	byNode(claim.Parts)
	return claim
}

func byNode(parts []Part) {
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Node, b.Node) })
}

// part is what so many workers take of a node.
func (c *Calendar) part(id plan.NodeID, shape *plan.Shape, workers int32) Part {
	p := Part{Node: id, Devices: workers * shape.Devices, CPU: workers * shape.CPU, Host: workers * shape.Host}
	if shape.Devices > 0 && shape.Share < 1000 {
		per := shape.PerDevice(c.nodes[id].memory)
		p.Devices = (workers + per - 1) / per
	}
	return p
}

// drain is how many workers more a node could take once so many runs of unknown end
// are over, the oldest of which began at an instant.
type drain struct {
	node    plan.NodeID
	workers int32
	runs    int32
	oldest  unit.Time
	last    plan.RunID // counted last
}

// drain chooses nodes to drain. It follows a search that found nothing, which leaves
// what the nodes hold when all is over whose end is known.
func (c *Calendar) drain(g gang, b beside) (Claim, bool) {
	c.drains = c.drains[:0]
	for id := range plan.NodeID(len(c.nodes)) {
		c.drains = append(c.drains, drain{node: id, oldest: unit.Never, last: plan.None})
		if c.takes(id, &g) {
			c.drains[id].workers = max(0, c.workers(id, &g, c.emptied(id, b))-c.hold[id])
		}
	}
	for run := range c.runs {
		if c.runs[run].end != unit.Never {
			continue
		}
		since := c.v.Run(plan.RunID(run)).Since
		if began := c.v.Run(plan.RunID(run)).Began; began != unit.Never {
			since = began
		}
		c.v.GrantsOf(plan.RunID(run), func(on plan.Grant) {
			if d := &c.drains[on.Node]; d.last != plan.RunID(run) {
				d.last, d.runs, d.oldest = plan.RunID(run), d.runs+1, min(d.oldest, since)
			}
		})
	}
	for id, w := range c.hold {
		c.drains = append(c.drains, drain{node: plan.NodeID(id), workers: w, oldest: unit.Never})
	}
	c.drains = slices.DeleteFunc(c.drains, func(d drain) bool { return d.workers == 0 })
	slices.SortFunc(c.drains, func(x, y drain) int {
		return cmp.Or(cmp.Compare(int64(x.runs)*int64(y.workers), int64(y.runs)*int64(x.workers)),
			cmp.Compare(x.oldest, y.oldest), cmp.Compare(y.workers, x.workers), cmp.Compare(x.node, y.node))
	})
	return c.fill(g)
}

// emptied is what a node has once all that runs on it is over, and all claims that
// ever are.
func (c *Calendar) emptied(id plan.NodeID, b beside) step {
	c.index()
	n := &c.nodes[id]
	has := step{full: int64(n.whole), cpu: int64(n.cpu), host: int64(n.host)}
	for i := range n.releases {
		has.release(&n.releases[i])
	}
	for _, e := range c.on(id) {
		if b.counts(&e) && e.to == unit.Never {
			has.add(step{full: -e.devices, cpu: -e.cpu, host: -e.host})
		}
	}
	return has
}

// fill takes the drains in their order until the gang is complete.
func (c *Calendar) fill(g gang) (Claim, bool) {
	rest := g.workers
	for i := range c.hold {
		c.hold[i] = 0
	}
	for _, d := range c.drains {
		n := min(rest, d.workers)
		c.hold[d.node] += n
		rest -= n
	}
	if rest > 0 {
		return Claim{}, false
	}
	claim := Claim{Job: g.job, Workers: g.workers, At: unit.Never, Due: unit.Never, Length: g.length}
	for id, n := range c.hold {
		if n > 0 {
			claim.Parts = append(claim.Parts, c.part(plan.NodeID(id), g.shape, n))
		}
	}
	return claim, true
}
