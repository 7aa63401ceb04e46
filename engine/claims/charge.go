package claims

import (
	"iter"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// charge is what a run counts for in the tree of queues.
type charge struct {
	leaf, user, model int32
	place             int32 // in its leaf's list of running jobs
	milli             int64
	protected         unit.Time // until when the run is not displaced for a guarantee or a priority, where there are several queues
}

// Charge counts what a job's run holds against its queue and user.
func (c *Claims) Charge(v plan.View, id plan.JobID) {
	j := v.Job(id)
	c.DropWaiting(id)
	c.lowest = min(c.lowest, j.Priority)
	x := charge{leaf: c.LeafOf(v, &j), user: j.User, model: plan.None}
	v.GrantsOf(j.Run, func(g plan.Grant) {
		if g.Device == plan.None {
			return
		}
		if model := v.Node(g.Node).Model; model != x.model {
			if x.milli > 0 {
				c.more[id] = append(c.more[id], x)
			}
			x.model, x.milli = model, 0
		}
		x.milli += int64(g.Reserve)
	})
	if c.Shared() {
		list := &c.leaves[x.leaf].running
		x.place = int32(len(*list))
		*list = append(*list, id)
		c.running.Grow(v.Jobs())
		c.running.Add(int32(id))
		x.protected = protection(v, j.Run, c.config.Protect)
	}
	c.charged[id] = x
	c.Count(id, 1)
}

// Discharge takes back what Charge counted.
func (c *Claims) Discharge(id plan.JobID) {
	c.Count(id, -1)
	if x := c.charged[id]; c.Shared() {
		list := c.leaves[x.leaf].running
		last := list[len(list)-1]
		list[x.place], c.charged[last].place = last, x.place
		c.leaves[x.leaf].running = list[:len(list)-1]
		c.running.Remove(int32(id))
	}
	c.charged[id] = charge{}
	delete(c.more, id)
}

// Count counts what a run is charged with once more, or with a sign of -1 no longer, while it is
// found out what would be if it ended.
func (c *Claims) Count(id plan.JobID, sign int64) {
	if x := c.charged[id]; x.milli > 0 {
		c.Use(x.leaf, x.user, x.model, sign*x.milli)
		for _, x := range c.more[id] {
			c.Use(x.leaf, x.user, x.model, sign*x.milli)
		}
	}
}

// ChargedTo is the leaf that a job's run is charged to.
func (c *Claims) ChargedTo(job plan.JobID) int32 { return c.charged[job].leaf }

// Running are the jobs that are charged, where there are several queues.
func (c *Claims) Running() iter.Seq[int32] { return c.running.All() }
