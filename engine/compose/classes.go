package compose

import (
	"math/bits"
	"slices"

	"github.com/musterdl/muster/plan"
)

// owner is who has jobs that wait: a queue, in it a user where users have limits, and guests apart.
type owner struct {
	leaf, user int32
	guest      bool // they are guests, and want devices of their own
}

// owned is what an owner has that is worth a try.
type owned struct {
	leaf     int32
	open     int32 // classes
	preempts bool  // priority counts for its jobs
}

// alike are the classes of one shape, in files of those whose jobs take about as long.
type alike struct {
	files   []*file
	opened  int64   // changes of those that are worth a try
	crowded crowded // when they were last blocked together
	takers  takers
}

// file is the classes of one shape and one step, at most one for each owner. Those that have jobs are marked by their
// places: to block all of them costs a word for 64.
type file struct {
	of      *alike
	shape   int32
	step    int32
	classes []int32
	owners  []int32 // whose they are
	open    marks   // those worth a try
	blocked marks   // those whose best job was tried and could not be placed
	keptOut marks   // those of them that claims keep out in this pass, without a try
}

// takers are the owners who may take room back with a shape, since it is within what they are guaranteed.
type takers struct {
	marks
	turn int64 // of the tree, counted from 1
}

// fileOf returns the file for a shape and a step.
func (s *Scheduler) fileOf(shape, step int32) *file {
	for int(shape) >= len(s.lines.alike) {
		s.lines.alike, s.lines.blocked = append(s.lines.alike, &alike{}), append(s.lines.blocked, 0)
	}
	of := s.lines.alike[shape]
	if at := slices.IndexFunc(of.files, func(f *file) bool { return f.step == step }); at >= 0 {
		return of.files[at]
	}
	f := &file{of: of, shape: shape, step: step}
	of.files = append(of.files, f)
	return f
}

// newClass returns a class for a kind that has had none.
func (s *Scheduler) newClass(k kind) int32 {
	who, known := s.lines.owner[k.owner]
	if !known {
		who = int32(len(s.lines.owners))
		s.lines.owner[k.owner] = who
		s.lines.owners = append(s.lines.owners, owned{leaf: k.leaf, preempts: s.claims.tree.heads[k.leaf].preempts})
		for _, of := range s.lines.alike {
			of.takers.turn = 0
		}
	}
	at, f := int32(len(s.lines.classes)), s.fileOf(k.shape, k.step)
	s.lines.class[k] = at
	s.lines.classes = append(s.lines.classes, class{kind: k, in: f, place: int32(len(f.classes)), waiting: heap{pos: &s.lines.pos}})
	f.classes, f.owners = append(f.classes, at), append(f.owners, who)
	for _, m := range []*marks{&f.open, &f.blocked, &f.keptOut} {
		m.grow(len(f.classes))
	}
	leaf := &s.claims.tree.heads[k.leaf]
	leaf.classes = append(leaf.classes, at)
	return at
}

// isBlocked reports whether the best job of a class was tried and could not be placed.
func (c *class) isBlocked() bool { return c.in.blocked.has(c.place) }

// block marks that a class is not worth a try.
func (s *Scheduler) block(c *class) {
	if f := c.in; f.open.has(c.place) {
		f.open.unset(c.place)
		f.blocked.set(c.place)
		s.lines.blocked[f.shape]++
		s.recount(f.owners[c.place], -1)
	}
}

// unblock marks that a class is worth a try again.
func (s *Scheduler) unblock(c *class) {
	if f := c.in; f.blocked.has(c.place) {
		f.blocked.unset(c.place)
		f.open.set(c.place)
		s.lines.blocked[f.shape]--
		f.of.opened++
		s.recount(f.owners[c.place], 1)
	}
}

// refile keeps a class where it belongs after jobs came or went.
func (s *Scheduler) refile(c *class) {
	f, has := c.in, len(c.waiting.items) > 0
	s.claims.tree.heads[c.leaf].headed = false
	switch open, blocked := f.open.has(c.place), f.blocked.has(c.place); {
	case has && !blocked:
		f.of.opened++
		if !open {
			f.open.set(c.place)
			s.recount(f.owners[c.place], 1)
		}
	case !has && open:
		f.open.unset(c.place)
		s.recount(f.owners[c.place], -1)
	case !has && blocked:
		f.blocked.unset(c.place)
		s.lines.blocked[f.shape]--
	}
}

// recount keeps the count of what an owner has that is worth a try, and the tree's of such owners.
func (s *Scheduler) recount(who, n int32) {
	o := &s.lines.owners[who]
	s.claims.tree.heads[o.leaf].headed = false
	if o.open += n; o.open == max(0, n) {
		s.claims.tree.opened(o.leaf, n)
	}
}

// blockAll blocks the classes of a file that are worth a try, of those that are marked.
func (s *Scheduler) blockAll(f *file, of marks) {
	for w, word := range of {
		word &= f.open[w]
		f.open[w] &^= word
		f.blocked[w] |= word
		s.lines.blocked[f.shape] += int32(bits.OnesCount64(word))
		for ; word != 0; word &= word - 1 {
			s.recount(f.owners[w<<6+bits.TrailingZeros64(word)], -1)
		}
	}
}

// unblockAll is the reverse.
func (s *Scheduler) unblockAll(f *file, of marks) {
	for w, word := range of {
		word &= f.blocked[w]
		f.blocked[w] &^= word
		f.open[w] |= word
		s.lines.blocked[f.shape] -= int32(bits.OnesCount64(word))
		f.of.opened += int64(bits.OnesCount64(word))
		for ; word != 0; word &= word - 1 {
			s.recount(f.owners[w<<6+bits.TrailingZeros64(word)], 1)
		}
	}
}

// reopenShape unblocks all classes of a shape.
func (s *Scheduler) reopenShape(of *alike) {
	for _, f := range of.files {
		s.unblockAll(f, f.blocked)
	}
}

// reopenAll unblocks all classes.
func (s *Scheduler) reopenAll() {
	for id, blocked := range s.lines.blocked {
		if blocked > 0 {
			s.reopenShape(s.lines.alike[id])
		}
	}
}

// reopenRoomy lets the classes be tried again that the free room might now hold. Where
// the order preempts every class might, since what runs counts as room too.
func (s *Scheduler) reopenRoomy(v plan.View) {
	for id, blocked := range s.lines.blocked {
		if blocked == 0 {
			continue
		}
		shape := v.ShapeOf(int32(id))
		if s.able.finder || s.parts.Sharer != nil || s.rules.Preempt || roomFor(v, shape, smallest(shape)) || s.scattered(v, shape) {
			s.reopenShape(s.lines.alike[id])
		} else if s.couldTakeBack(v, shape) {
			s.reopenTakersOf(v, int32(id))
		}
	}
}

// reopenTakers lets those be tried again that may take room back from what runs.
func (s *Scheduler) reopenTakers(v plan.View) {
	for id, blocked := range s.lines.blocked {
		if blocked > 0 && s.couldTakeBack(v, v.ShapeOf(int32(id))) {
			s.reopenTakersOf(v, int32(id))
		}
	}
}

func (s *Scheduler) reopenTakersOf(v plan.View, id int32) {
	takers := s.takers(v, id)
	for _, f := range s.lines.alike[id].files {
		for at := range f.blocked.all() {
			if takers.has(f.owners[at]) && s.takesBack(v, &s.lines.classes[f.classes[at]]) {
				s.unblock(&s.lines.classes[f.classes[at]])
			}
		}
	}
}

// takers marks the owners whose best job of a shape may take room back: it is within a guarantee, or priority may
// count for it.
func (s *Scheduler) takers(v plan.View, id int32) marks {
	t := &s.lines.alike[id].takers
	t.grow(len(s.lines.owners))
	if turn := s.claims.tree.Turn() + 1; s.claims.tree.Shared() && t.turn != turn {
		t.turn = turn
		shape := v.ShapeOf(id)
		clear(t.marks)
		milli := shape.Milli(smallest(shape))
		for i := range s.lines.owners {
			o := &s.lines.owners[i]
			if o.preempts || milli <= s.claims.tree.MostGuaranteed(o.leaf) && s.claims.tree.Guaranteed(o.leaf, shape.Models, milli) {
				t.set(int32(i))
			}
		}
	}
	return t.marks
}

// crowded is what whoever is blocked with a shape depends on: the draft, and which of its
// classes are worth a try.
type crowded struct{ pass, turns, opened int64 }

// crowd blocks all classes of a shape for which there is no room: nobody's job of it
// fits, unless it may take room back.
func (s *Scheduler) crowd(d *plan.Draft, id int32) {
	of := s.lines.alike[id]
	v, now := d.View, crowded{s.lines.pass, d.Turns(), of.opened}
	if of.crowded == now {
		return // those who are still open may take room back, and so they may now
	}
	of.crowded = now
	shape, takers := v.ShapeOf(id), s.takers(v, id)
	for _, f := range of.files {
		some := s.copyOf(f.open)
		for at := range some.all() {
			if c := f.classes[at]; takers.has(f.owners[at]) && s.takesBack(v, &s.lines.classes[c]) && s.mayTakeBack(v, shape, s.lines.classes[c].priority) {
				some.unset(at)
			}
		}
		s.blockAll(f, some)
	}
}

// copyOf returns marks that may be changed until it is called again.
func (s *Scheduler) copyOf(m marks) marks {
	s.lines.some = append(s.lines.some[:0], m...)
	return s.lines.some
}

// keepOut blocks, untried, all classes of a shape whose best job takes at least as long as one that was just tried
// and found no room beside the claims, as it finds none either: where no more claims are to be made, and nothing
// but free room is asked for.
func (s *Scheduler) keepOut(d *plan.Draft, job plan.JobID, id int32) {
	v, shape := d.View, d.ShapeOf(id)
	if !s.agenda.Full() || len(s.agenda.Windows()) > 0 || shape.Elastic() ||
		s.parts.Sharer != nil || s.able.finder || s.able.patient || s.moves() {
		return
	}
	n, own := smallest(shape), s.lines.classes[s.lines.home[job]].step
	length, takers := s.agenda.Length(v, job, n), s.takers(v, id)
	steps := s.parts.Reserve.Foresight == nil // classes are told apart by this length, and by no other
	for _, f := range s.lines.alike[id].files {
		if steps && f.step < own {
			continue
		}
		some := s.copyOf(f.open)
		for at := range some.all() {
			c := f.classes[at]
			if !steps || f.step == own {
				if other := s.lines.classes[c].waiting.items[0].job; other == job || s.agenda.Length(v, other, n) < length {
					some.unset(at)
				}
			}
			if takers.has(f.owners[at]) && s.takesBack(v, &s.lines.classes[c]) {
				some.unset(at)
			}
		}
		for _, claim := range s.agenda.Claims() {
			if c := s.classOf(claim.Job); c != nil && c.in == f && c.waiting.items[0].job == claim.Job {
				some.unset(c.place)
			}
		}
		s.keepOutOf(f, some)
	}
}

// keepOutOf blocks the classes of a file that are marked until there is room for a claim.
func (s *Scheduler) keepOutOf(f *file, some marks) {
	if !some.any() {
		return
	}
	if !f.keptOut.any() {
		s.lines.keptOut = append(s.lines.keptOut, f)
	}
	s.blockAll(f, some)
	for w, word := range some {
		f.keptOut[w] |= word
	}
}

// letIn has those tried whom claims kept out without a try, if there is room for a claim again, and
// reports whether there are any.
func (s *Scheduler) letIn() bool {
	if len(s.lines.keptOut) == 0 || s.agenda.Full() {
		return false
	}
	for _, f := range s.lines.keptOut {
		s.unblockAll(f, f.keptOut)
	}
	s.forgetKeptOut()
	return true
}

func (s *Scheduler) forgetKeptOut() {
	for _, f := range s.lines.keptOut {
		clear(f.keptOut)
	}
	s.lines.keptOut = s.lines.keptOut[:0]
}

// classOf is the class that a job waits in, if it does.
func (s *Scheduler) classOf(job plan.JobID) *class {
	if home := s.lines.home[job]; home >= 0 {
		return &s.lines.classes[home]
	}
	return nil
}

func smallest(shape *plan.Shape) int32 {
	if shape.Elastic() {
		return min(shape.Gang, shape.Sizes[0])
	}
	return shape.Gang
}
