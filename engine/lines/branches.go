package lines

import "github.com/musterdl/muster/plan"

// branches say where in the tree of queues somebody waits who is worth a try.
type branches struct {
	list []branch
	pass int64
}

// branch is what waits in a branch.
type branch struct {
	parent  int32
	below   []int32
	open    int32    // owners in it who have something worth a try, and branches below it that have
	closed  int64    // the pass in which it was closed
	classes []*Class // that are filed here
	head    *Class   // of those, the one whose best job ranks first, if one is to be tried; if headed
	headed  bool
	front   Item // the best of all jobs that wait here; if headed and there is one
}

func newBranches(tree Tree) branches {
	b := branches{list: make([]branch, tree.Branches()), pass: 1} // nothing was closed in it
	for i := range b.list {
		b.list[i].parent, b.list[i].below = tree.Parent(int32(i)), tree.Below(int32(i))
	}
	return b
}

// Pass is the number of this pass over those who wait.
func (b *branches) Pass() int64 { return b.pass }

// NextPass begins another pass: what was closed is open.
func (b *branches) NextPass() { b.pass++ }

// Close has nobody of a leaf tried in this pass any more.
func (b *branches) Close(leaf int32) { b.list[leaf].closed = b.pass }

// Open adds to the count of those in a leaf who have something that is worth a try, and says so
// further up when that makes it the first or the last.
func (b *branches) Open(leaf, n int32) {
	for at := leaf; at >= 0; at = b.list[at].parent {
		x := &b.list[at]
		was := x.open > 0
		if x.open += n; was == (x.open > 0) {
			return
		}
	}
}

// Available reports whether somebody in a branch is worth a try.
func (b *branches) Available(at int32) bool {
	x := &b.list[at]
	if x.open == 0 || x.closed == b.pass {
		return false
	}
	if len(x.below) == 0 {
		return true
	}
	for _, c := range x.below {
		if b.Available(c) {
			return true
		}
	}
	return false
}

// First returns the class of a leaf whose best job is tried first, nil if there is none. Under a
// strict order that is nobody while who ranks first is blocked.
func (l *Lines) First(leaf int32) *Class {
	x := &l.list[leaf]
	if x.headed {
		return x.head
	}
	var first *Class
	var front *Item
	for _, c := range x.classes {
		if len(c.waiting.items) == 0 {
			continue
		}
		if it := c.Best(); front == nil || it.Before(front) {
			front = it
		}
		if (l.rules.Strict || !c.Blocked()) && (first == nil || l.goesFirst(c, first)) {
			first = c
		}
	}
	if front != nil {
		x.front = *front
	}
	if first != nil && first.Blocked() {
		first = nil
	}
	x.head, x.headed = first, true
	return first
}

// goesFirst reports whether one class is tried before another.
func (l *Lines) goesFirst(a, b *Class) bool {
	if l.rules.Short && a.Step != b.Step {
		return a.Step < b.Step
	}
	return a.Best().Before(b.Best())
}

// RunnerUp is who of its leaf would be tried next, were it not for the best job of a class.
func (l *Lines) RunnerUp(c *Class) plan.JobID {
	var second Item
	next := plan.JobID(plan.None)
	consider := func(it Item) {
		if next == plan.None || it.Before(&second) {
			second, next = it, it.Job
		}
	}
	for _, o := range l.list[c.Leaf].classes {
		if o != c && len(o.waiting.items) > 0 && (l.rules.Strict || !o.Blocked()) {
			consider(*o.Best())
		}
	}
	// The next of the same shape stands right below the best in its heap.
	same := c.waiting.items
	for _, it := range same[1:min(3, len(same))] {
		consider(it)
	}
	return next
}

// Ahead is the best ranked job that waits in the leaf of a class, or was passed over there, if it
// ranks before the given one, which then passes it; None if nobody does.
func (l *Lines) Ahead(leaf int32, it Item) plan.JobID {
	l.First(leaf)
	first := it
	if front := &l.list[leaf].front; front.Job != it.Job && front.Before(&it) {
		first = *front
	}
	for _, o := range l.passed {
		if o.leaf == leaf && o.Before(&first) {
			first = o.Item
		}
	}
	if first.Job == it.Job {
		return plan.None
	}
	return first.Job
}
