package lines

import "github.com/musterdl/muster/plan"

// Takers says whose jobs of a shape may take room back from what runs.
type Takers interface {
	// Turn says when Leaf is asked: at the same turn it answers the same.
	Turn() int64
	// Leaf reports whether any of the jobs of a leaf may.
	Leaf(leaf int32) bool
	// Best reports whether the best job of a class may.
	Best(c *Class) bool
}

// takers are the owners who may take room back with a shape.
type takers struct {
	marks
	turn  int64
	known bool // as of that turn
}

// takers marks the owners whose leaves may take room back with a shape.
func (l *Lines) takers(shape int32, who Takers) marks {
	t := &l.alike[shape].takers
	t.grow(len(l.owners))
	turn := who.Turn()
	if t.known && t.turn == turn {
		return t.marks
	}
	t.known, t.turn = true, turn
	clear(t.marks)
	for i := range l.owners {
		if who.Leaf(l.owners[i].leaf) {
			t.set(int32(i))
		}
	}
	return t.marks
}

// ReopenTakers unblocks the classes of a shape whose best jobs may take room back.
func (l *Lines) ReopenTakers(shape int32, who Takers) {
	takers := l.takers(shape, who)
	for _, f := range l.alike[shape].files {
		for at := range f.blocked.all() {
			if takers.has(f.owners[at]) && who.Best(f.classes[at]) {
				l.Unblock(f.classes[at])
			}
		}
	}
}

// crowded is what whoever is blocked with a shape depends on: the draft, and which of its
// classes are worth a try.
type crowded struct{ pass, turn, opened int64 }

// Crowd blocks all classes of a shape for which there is no room at a turn of the draft: nobody's
// job of it fits, unless it may take room back.
func (l *Lines) Crowd(shape int32, turn int64, who Takers) {
	of := l.alike[shape]
	now := crowded{l.pass, turn, of.opened}
	if of.crowded == now {
		return // those who are still open may take room back, and so they may now
	}
	of.crowded = now
	takers := l.takers(shape, who)
	for _, f := range of.files {
		some := l.copyOf(f.open)
		for at := range some.all() {
			if takers.has(f.owners[at]) && who.Best(f.classes[at]) {
				some.unset(at)
			}
		}
		l.blockAll(f, some)
	}
}

// Beside is whom a job keeps out that was tried and found no room beside claims.
type Beside struct {
	Class *Class // the job's
	// Steps says that steps tell how long jobs take: those of a later one fit no better, and of an
	// earlier one nothing is known. Else Shorter tells of all.
	Steps bool
	// Shorter reports whether a job takes less time than the one that was tried, or is that.
	Shorter func(job plan.JobID) bool
	// Claims are those that there are: nobody is kept from his own room.
	Claims []plan.Claim
	Takers
}

// KeepOut blocks, untried, the classes of a shape whose best jobs take at least as long as one that
// found no room beside the claims, as they find none either, until LetIn.
func (l *Lines) KeepOut(b Beside) {
	shape, takers := b.Class.Shape, l.takers(b.Class.Shape, b.Takers)
	for _, f := range l.alike[shape].files {
		if b.Steps && f.step < b.Class.Step {
			continue
		}
		some := l.copyOf(f.open)
		asks := !b.Steps || f.step == b.Class.Step
		for at := range some.all() {
			if c := f.classes[at]; asks && b.Shorter(c.Best().Job) || takers.has(f.owners[at]) && b.Best(c) {
				some.unset(at)
			}
		}
		for _, claim := range b.Claims {
			if c := l.ClassOf(claim.Job); c != nil && c.in == f && c.Best().Job == claim.Job {
				some.unset(c.place)
			}
		}
		l.keepOutOf(f, some)
	}
}

// keepOutOf blocks the classes of a file that are marked until there is room for a claim.
func (l *Lines) keepOutOf(f *file, some marks) {
	if !some.any() {
		return
	}
	if !f.keptOut.any() {
		l.keptOut = append(l.keptOut, f)
	}
	l.blockAll(f, some)
	for w, word := range some {
		f.keptOut[w] |= word
	}
}

// LetIn unblocks those whom claims kept out without a try, and returns whether there are any.
func (l *Lines) LetIn() (any bool) {
	any = len(l.keptOut) > 0
	for _, f := range l.keptOut {
		l.unblockAll(f, f.keptOut)
	}
	l.ForgetKeptOut()
	return any
}
