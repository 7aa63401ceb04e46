package calendar

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// finding is what was found out about a claim that stayed where it is, so that the next look at it
// asks only of nodes that changed. Time passing takes candidates away and adds none, and so changes
// nothing of it.
type finding struct {
	claim Claim
	// stood is, by part, the version of its node with which it was found to fit at its instant.
	stood []int64
	// most is, by node, how many workers it takes at any one instant before that of the claim, and
	// of the version at; all is the sum. No sooner place is to be had where that is too few.
	most []int32
	at   []int64
	all  int64
}

// findingOf is what is known of a claim: nothing, once it is another than it was.
func (c *Calendar) findingOf(cl *Claim) *finding {
	f := c.found[cl.Job]
	if f == nil {
		if len(c.found) > 2*len(c.claims) {
			clear(c.found) // of claims that are no more
		}
		if c.found == nil {
			c.found = map[plan.JobID]*finding{}
		}
		f = new(finding)
		c.found[cl.Job] = f
	} else if f.claim.Equal(*cl) {
		return f
	}
	f.claim = *cl
	f.claim.Parts = slices.Clone(cl.Parts)
	f.stood, f.most, f.at, f.all = f.stood[:0], f.most[:0], f.at[:0], 0
	return f
}

// stands reports whether every part of a claim fits at its instant, on nodes that it can count on.
// It looks again at those only that changed since they were found to.
func (c *Calendar) stands(f *finding, i int) bool {
	c.index()
	cl := &c.claims[i]
	for len(f.stood) < len(cl.Parts) {
		f.stood = append(f.stood, -1)
	}
	for k := range cl.Parts {
		p := &cl.Parts[k]
		if n := &c.nodes[p.Node]; f.stood[k] == n.version {
			continue
		}
		if cl.At != unit.Never && when(c.timeline(p.Node, besideOf(c, cl.Job, i, i, nil)), *p, cl.At, cl.Length) != cl.At || c.lostOn(cl, p) {
			return false
		}
		f.stood[k] = c.nodes[p.Node].version
	}
	return true
}

// mayBeSooner reports whether all nodes, each at its best instant before that of the claim, take
// as many workers as it needs. It looks again at those only that changed since it was asked last.
func (c *Calendar) mayBeSooner(f *finding, g *gang, b beside) bool {
	c.index()
	for len(f.at) < len(c.nodes) {
		f.most, f.at = append(f.most, 0), append(f.at, -1)
	}
	for id := range c.nodes {
		n := &c.nodes[id]
		if f.at[id] == n.version {
			continue
		}
		most := int32(0)
		if c.takes(plan.NodeID(id), g) {
			most = c.mostOf(plan.NodeID(id), g, b, f.claim.At)
		}
		f.all += int64(most - f.most[id])
		f.most[id], f.at[id] = most, n.version
	}
	return f.all >= int64(g.workers)
}

// mostOf is the most workers of a gang that a node takes for the gang's whole length from any
// instant on before a given one.
func (c *Calendar) mostOf(id plan.NodeID, g *gang, b beside, before unit.Time) (most int32) {
	c.offers = c.offers[:0]
	c.offer(id, g, b, before)
	for i := range c.offers {
		most = max(most, c.offers[i].workers)
	}
	return most
}
