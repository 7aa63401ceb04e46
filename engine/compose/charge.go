package compose

import "github.com/musterdl/muster/plan"

// charge is what a run counts for in the tree of queues.
type charge struct {
	leaf, user, model int32
	place             int32 // in its leaf's list of running jobs
	milli             int64
}

// charge counts what a job's run holds against its queue and user.
func (s *Scheduler) charge(v plan.View, id plan.JobID) {
	j := v.Job(id)
	c := charge{leaf: s.tree.leaf(v, &j), user: j.User, model: plan.None}
	v.GrantsOf(j.Run, func(g plan.Grant) {
		if g.Device == plan.None {
			return
		}
		if model := v.Node(g.Node).Model; model != c.model {
			if c.milli > 0 {
				s.more[id] = append(s.more[id], c)
			}
			c.model, c.milli = model, 0
		}
		c.milli += int64(g.Reserve)
	})
	if list := &s.tree.heads[c.leaf].running; s.tree.Shared() {
		c.place = int32(len(*list))
		*list = append(*list, id)
	}
	s.charged[id] = c
	s.count(id, 1)
}

// discharge takes back what charge counted.
func (s *Scheduler) discharge(id plan.JobID) {
	s.count(id, -1)
	if c := s.charged[id]; s.tree.Shared() {
		list := s.tree.heads[c.leaf].running
		last := list[len(list)-1]
		list[c.place], s.charged[last].place = last, c.place
		s.tree.heads[c.leaf].running = list[:len(list)-1]
	}
	s.charged[id] = charge{}
	delete(s.more, id)
}

func (s *Scheduler) count(id plan.JobID, sign int64) {
	if c := s.charged[id]; c.milli > 0 {
		s.tree.Use(c.leaf, c.user, c.model, sign*c.milli)
		for _, c := range s.more[id] {
			s.tree.Use(c.leaf, c.user, c.model, sign*c.milli)
		}
	}
}
