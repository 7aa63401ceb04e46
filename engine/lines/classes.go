package lines

import "math/bits"

// newClass returns a class for a kind that has had none.
func (l *Lines) newClass(k Kind) *Class {
	who, known := l.owner[k.Owner]
	if !known {
		who = int32(len(l.owners))
		l.owner[k.Owner] = who
		l.owners = append(l.owners, owned{leaf: k.Leaf})
		for _, of := range l.alike {
			of.takers.known = false
		}
	}
	f := l.fileOf(k.Shape, k.Step)
	c := &Class{Kind: k, id: int32(len(l.classes)), in: f, place: int32(len(f.classes)), waiting: heap{pos: &l.pos}}
	l.class[k], l.classes = c, append(l.classes, c)
	f.classes, f.owners = append(f.classes, c), append(f.owners, who)
	for _, m := range []*marks{&f.open, &f.blocked, &f.keptOut} {
		m.grow(len(f.classes))
	}
	l.list[k.Leaf].classes = append(l.list[k.Leaf].classes, c)
	return c
}

// Block marks that a class is not worth a try.
func (l *Lines) Block(c *Class) {
	if f := c.in; f.open.has(c.place) {
		f.open.unset(c.place)
		f.blocked.set(c.place)
		l.blocked[f.shape]++
		l.recount(f.owners[c.place], -1)
	}
}

// Unblock marks that a class is worth a try again.
func (l *Lines) Unblock(c *Class) {
	if f := c.in; f.blocked.has(c.place) {
		f.blocked.unset(c.place)
		f.open.set(c.place)
		l.blocked[f.shape]--
		f.of.opened++
		l.recount(f.owners[c.place], 1)
	}
}

// refile keeps a class where it belongs after jobs came or went.
func (l *Lines) refile(c *Class) {
	f, has := c.in, len(c.waiting.items) > 0
	l.list[c.Leaf].headed = false
	switch open, blocked := f.open.has(c.place), f.blocked.has(c.place); {
	case has && !blocked:
		f.of.opened++
		if !open {
			f.open.set(c.place)
			l.recount(f.owners[c.place], 1)
		}
	case !has && open:
		f.open.unset(c.place)
		l.recount(f.owners[c.place], -1)
	case !has && blocked:
		f.blocked.unset(c.place)
		l.blocked[f.shape]--
	}
}

// recount keeps the count of what an owner has that is worth a try, and the tree's of such owners.
func (l *Lines) recount(who, n int32) {
	o := &l.owners[who]
	l.list[o.leaf].headed = false
	if o.open += n; o.open == max(0, n) {
		l.Open(o.leaf, n)
	}
}

// blockAll blocks the classes of a file that are worth a try, of those that are marked.
func (l *Lines) blockAll(f *file, of marks) {
	for w, word := range of {
		word &= f.open[w]
		f.open[w] &^= word
		f.blocked[w] |= word
		l.blocked[f.shape] += int32(bits.OnesCount64(word))
		for ; word != 0; word &= word - 1 {
			l.recount(f.owners[w<<6+bits.TrailingZeros64(word)], -1)
		}
	}
}

// unblockAll is the reverse.
func (l *Lines) unblockAll(f *file, of marks) {
	for w, word := range of {
		word &= f.blocked[w]
		f.blocked[w] &^= word
		f.open[w] |= word
		l.blocked[f.shape] -= int32(bits.OnesCount64(word))
		f.of.opened += int64(bits.OnesCount64(word))
		for ; word != 0; word &= word - 1 {
			l.recount(f.owners[w<<6+bits.TrailingZeros64(word)], 1)
		}
	}
}

// ReopenShape unblocks all classes of a shape.
func (l *Lines) ReopenShape(shape int32) {
	for _, f := range l.alike[shape].files {
		l.unblockAll(f, f.blocked)
	}
}

// ReopenAll unblocks all classes.
func (l *Lines) ReopenAll() {
	for shape := range l.BlockedShapes() {
		l.ReopenShape(shape)
	}
}
