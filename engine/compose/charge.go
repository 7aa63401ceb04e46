package compose

import (
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

// charge counts what a job's run holds against its queue and user.
func (s *Scheduler) charge(v plan.View, id plan.JobID) {
	j := v.Job(id)
	s.claims.tree.unwait(id)
	c := charge{leaf: s.claims.tree.leaf(v, &j), user: j.User, model: plan.None}
	v.GrantsOf(j.Run, func(g plan.Grant) {
		if g.Device == plan.None {
			return
		}
		if model := v.Node(g.Node).Model; model != c.model {
			if c.milli > 0 {
				s.claims.more[id] = append(s.claims.more[id], c)
			}
			c.model, c.milli = model, 0
		}
		c.milli += int64(g.Reserve)
	})
	if list := &s.claims.tree.heads[c.leaf].running; s.claims.tree.Shared() {
		c.place = int32(len(*list))
		*list = append(*list, id)
		s.claims.running.Grow(v.Jobs())
		s.claims.running.Add(int32(id))
		c.protected = protection(v, j.Run, s.claims.tree.config.Protect)
	}
	s.claims.charged[id] = c
	s.count(id, 1)
}

// discharge takes back what charge counted.
func (s *Scheduler) discharge(id plan.JobID) {
	s.count(id, -1)
	if c := s.claims.charged[id]; s.claims.tree.Shared() {
		list := s.claims.tree.heads[c.leaf].running
		last := list[len(list)-1]
		list[c.place], s.claims.charged[last].place = last, c.place
		s.claims.tree.heads[c.leaf].running = list[:len(list)-1]
		s.claims.running.Remove(int32(id))
	}
	s.claims.charged[id] = charge{}
	delete(s.claims.more, id)
}

func (s *Scheduler) count(id plan.JobID, sign int64) {
	if c := s.claims.charged[id]; c.milli > 0 {
		s.claims.tree.Use(c.leaf, c.user, c.model, sign*c.milli)
		for _, c := range s.claims.more[id] {
			s.claims.tree.Use(c.leaf, c.user, c.model, sign*c.milli)
		}
	}
}
