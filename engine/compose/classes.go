package compose

import "github.com/musterdl/muster/plan"

// block marks that a class is not worth a try, or is again.
func (s *Scheduler) block(c *class, blocked bool) {
	if c.blocked == blocked {
		return
	}
	if c.blocked = blocked; blocked {
		s.lines.full[c.shape]++
	} else {
		s.lines.full[c.shape]--
	}
	s.recount(c)
}

// recount keeps the tree's count of classes worth a try.
func (s *Scheduler) recount(c *class) {
	s.claims.tree.heads[c.leaf].headed = false
	if !c.blocked {
		s.lines.opened[c.shape]++
	}
	if open := !c.blocked && len(c.waiting.items) > 0; open != c.open {
		c.open = open
		if open {
			s.claims.tree.opened(c.leaf, 1)
		} else {
			s.claims.tree.opened(c.leaf, -1)
		}
	}
}

// crowded is what whoever is blocked with a shape depends on: the draft, and which of its
// classes are worth a try.
type crowded struct{ pass, turns, opened int64 }

// unblock lets the classes be tried again that the free room might now hold. Where
// the order preempts every class might, since what runs counts as room too.
func (s *Scheduler) unblock(v plan.View) {
	for id, list := range s.lines.ofShape {
		if len(list) == 0 || s.lines.full[id] == 0 {
			continue
		}
		shape := v.ShapeOf(int32(id))
		if s.able.finder || s.parts.Sharer != nil || s.rules.Preempt || roomFor(v, shape, smallest(shape)) || s.scattered(v, shape) {
			for _, at := range list {
				s.block(&s.lines.classes[at], false)
			}
		} else if s.couldTakeBack(v, shape) {
			s.unblockTakersOf(v, list)
		}
	}
}

// unblockTakers lets those be tried again that may take room back from what runs.
func (s *Scheduler) unblockTakers(v plan.View) {
	for id, list := range s.lines.ofShape {
		if s.lines.full[id] > 0 && s.couldTakeBack(v, v.ShapeOf(int32(id))) {
			s.unblockTakersOf(v, list)
		}
	}
}

func (s *Scheduler) unblockTakersOf(v plan.View, list []int32) {
	for _, at := range list {
		if c := &s.lines.classes[at]; c.blocked && s.takesBack(v, c) {
			s.block(c, false)
		}
	}
}

// crowd blocks all classes of a shape for which there is no room: nobody's job of it
// fits, unless it may take room back.
func (s *Scheduler) crowd(d *plan.Draft, id int32) {
	v, now := d.View, crowded{s.lines.pass, d.Turns(), s.lines.opened[id]}
	if s.lines.crowded[id] == now {
		return // those who are still open may take room back, and so they may now
	}
	s.lines.crowded[id] = now
	shape := v.ShapeOf(id)
	for _, at := range s.lines.ofShape[id] {
		c := &s.lines.classes[at]
		if c.open && !(s.takesBack(v, c) && s.mayTakeBack(v, shape, c.priority)) {
			s.block(c, true)
		}
	}
}

// keepOut blocks, untried, all classes of a shape whose best job takes at least as long as one that was just tried
// and found no room beside the claims, as it finds none either: where no more claims are to be made, and nothing
// but free room is asked for.
func (s *Scheduler) keepOut(d *plan.Draft, job plan.JobID, id int32) {
	v, shape := d.View, d.ShapeOf(id)
	if len(s.agenda.calendar.Claims()) < s.parts.Reserve.Depth || len(s.agenda.calendar.Windows()) > 0 || shape.Elastic() ||
		s.parts.Sharer != nil || s.able.finder || s.able.patient || s.moves() {
		return
	}
	n, own := smallest(shape), s.lines.classes[s.lines.home[job]].step
	length, sure := s.length(v, job, n), s.claims.tree.guaranteed(v, job)
	steps := s.parts.Reserve.Foresight == nil // classes are told apart by this length, and by no other
	for _, at := range s.lines.ofShape[id] {
		c := &s.lines.classes[at]
		if !c.open || steps && c.step < own {
			continue
		}
		other := c.waiting.items[0].job
		longer := steps && c.step > own || s.length(v, other, n) >= length
		if !longer || other == job || s.takesBack(v, c) || s.agenda.calendar.Find(other) >= 0 || !sure && s.claims.tree.guaranteed(v, other) {
			continue
		}
		s.block(c, true)
		s.lines.keptOut = append(s.lines.keptOut, at)
	}
}

// letIn has those tried whom claims kept out without a try, if there is room for a claim again, and
// reports whether there are any.
func (s *Scheduler) letIn() bool {
	if len(s.lines.keptOut) == 0 || len(s.agenda.calendar.Claims()) >= s.parts.Reserve.Depth {
		return false
	}
	for _, at := range s.lines.keptOut {
		s.block(&s.lines.classes[at], false)
	}
	s.lines.keptOut = s.lines.keptOut[:0]
	return true
}

func (s *Scheduler) unblockAll() {
	for i := range s.lines.classes {
		s.block(&s.lines.classes[i], false)
	}
}

func smallest(shape *plan.Shape) int32 {
	if shape.Elastic() {
		return min(shape.Gang, shape.Sizes[0])
	}
	return shape.Gang
}
