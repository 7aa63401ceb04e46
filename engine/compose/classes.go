package compose

import (
	"slices"

	"github.com/musterdl/muster/plan"
)

// standing is whether a class is worth a try.
type standing int8

const (
	empty   standing = iota // it has no jobs
	open                    // it has jobs, and is not blocked
	blocked                 // it has jobs, the best of which was tried and could not be placed
)

// alike are the classes of one shape, in files of those whose jobs take about as long.
type alike struct {
	files   []file
	blocked int     // how many of them are
	opened  int64   // changes of those that are worth a try
	crowded crowded // when they were last blocked together
}

// file is the classes of a shape and a step that have jobs, by how they stand.
type file struct {
	step    int32
	classes [blocked + 1][]int32
}

// fileOf returns the place of the file for a shape and a step, which is made if it is new.
func (s *Scheduler) fileOf(shape, step int32) int32 {
	for int(shape) >= len(s.lines.alike) {
		s.lines.alike = append(s.lines.alike, alike{})
	}
	of := &s.lines.alike[shape]
	at := slices.IndexFunc(of.files, func(f file) bool { return f.step == step })
	if at < 0 {
		at, of.files = len(of.files), append(of.files, file{step: step})
	}
	return int32(at)
}

// block marks that a class is not worth a try, or is again.
func (s *Scheduler) block(at int32, is bool) {
	if c := &s.lines.classes[at]; c.blocked != is {
		c.blocked = is
		s.recount(at)
	}
}

// recount keeps the files and the tree's count of what is worth a try, after a change of a class.
func (s *Scheduler) recount(at int32) {
	c := &s.lines.classes[at]
	s.claims.tree.heads[c.leaf].headed = false
	of, is := &s.lines.alike[c.shape], open
	if c.blocked {
		is = blocked
	} else {
		of.opened++
	}
	if len(c.waiting.items) == 0 {
		is = empty
	}
	was := c.stands
	if is == was {
		return
	}
	lists := &of.files[c.file].classes
	if was != empty {
		list := lists[was]
		last := list[len(list)-1]
		list[c.place], s.lines.classes[last].place = last, c.place
		lists[was] = list[:len(list)-1]
	}
	if is != empty {
		c.place = int32(len(lists[is]))
		lists[is] = append(lists[is], at)
	}
	c.stands = is
	if was == blocked {
		of.blocked--
	} else if is == blocked {
		of.blocked++
	}
	if was == open {
		s.claims.tree.opened(c.leaf, -1)
	} else if is == open {
		s.claims.tree.opened(c.leaf, 1)
	}
}

// blockAll blocks, or opens again, those of a list for which that is so.
func (s *Scheduler) blockAll(list *[]int32, is bool, which func(at int32, c *class) bool) {
	for i := 0; i < len(*list); {
		at := (*list)[i]
		if c := &s.lines.classes[at]; which(at, c) {
			s.block(at, is) // which puts another in its place
		} else {
			i++
		}
	}
}

// crowded is what whoever is blocked with a shape depends on: the draft, and which of its
// classes are worth a try.
type crowded struct{ pass, turns, opened int64 }

// unblock lets the classes be tried again that the free room might now hold. Where
// the order preempts every class might, since what runs counts as room too.
func (s *Scheduler) unblock(v plan.View) {
	for id := range s.lines.alike {
		of := &s.lines.alike[id]
		if of.blocked == 0 {
			continue
		}
		shape := v.ShapeOf(int32(id))
		if s.able.finder || s.parts.Sharer != nil || s.rules.Preempt || roomFor(v, shape, smallest(shape)) || s.scattered(v, shape) {
			s.unblockIf(of, func(int32, *class) bool { return true })
		} else if s.couldTakeBack(v, shape) {
			s.unblockIf(of, func(_ int32, c *class) bool { return s.takesBack(v, c) })
		}
	}
}

// unblockTakers lets those be tried again that may take room back from what runs.
func (s *Scheduler) unblockTakers(v plan.View) {
	for id := range s.lines.alike {
		if of := &s.lines.alike[id]; of.blocked > 0 && s.couldTakeBack(v, v.ShapeOf(int32(id))) {
			s.unblockIf(of, func(_ int32, c *class) bool { return s.takesBack(v, c) })
		}
	}
}

func (s *Scheduler) unblockIf(of *alike, which func(at int32, c *class) bool) {
	for f := range of.files {
		s.blockAll(&of.files[f].classes[blocked], false, which)
	}
}

// crowd blocks all classes of a shape for which there is no room: nobody's job of it
// fits, unless it may take room back.
func (s *Scheduler) crowd(d *plan.Draft, id int32) {
	of := &s.lines.alike[id]
	v, now := d.View, crowded{s.lines.pass, d.Turns(), of.opened}
	if of.crowded == now {
		return // those who are still open may take room back, and so they may now
	}
	of.crowded = now
	shape := v.ShapeOf(id)
	for f := range of.files {
		s.blockAll(&of.files[f].classes[open], true, func(_ int32, c *class) bool {
			return !(s.takesBack(v, c) && s.mayTakeBack(v, shape, c.priority))
		})
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
	length := s.length(v, job, n)
	steps := s.parts.Reserve.Foresight == nil // classes are told apart by this length, and by no other
	of := &s.lines.alike[id]
	for f := range of.files {
		step := of.files[f].step
		if steps && step < own {
			continue
		}
		s.blockAll(&of.files[f].classes[open], true, func(at int32, c *class) bool {
			other := c.waiting.items[0].job
			longer := steps && step > own || s.length(v, other, n) >= length
			if !longer || other == job || s.takesBack(v, c) || s.agenda.calendar.Find(other) >= 0 {
				return false
			}
			s.lines.keptOut = append(s.lines.keptOut, at)
			return true
		})
	}
}

// letIn has those tried whom claims kept out without a try, if there is room for a claim again, and
// reports whether there are any.
func (s *Scheduler) letIn() bool {
	if len(s.lines.keptOut) == 0 || len(s.agenda.calendar.Claims()) >= s.parts.Reserve.Depth {
		return false
	}
	for _, at := range s.lines.keptOut {
		s.block(at, false)
	}
	s.lines.keptOut = s.lines.keptOut[:0]
	return true
}

func (s *Scheduler) unblockAll() {
	for id := range s.lines.alike {
		s.unblockIf(&s.lines.alike[id], func(int32, *class) bool { return true })
	}
}

func smallest(shape *plan.Shape) int32 {
	if shape.Elastic() {
		return min(shape.Gang, shape.Sizes[0])
	}
	return shape.Gang
}
