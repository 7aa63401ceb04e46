package lines

import "fmt"

// Check says what of the marks and counts is not as the classes are.
func (l *Lines) Check() error {
	open, blocked := make([]int32, len(l.owners)), make([]int32, len(l.blocked))
	for i, c := range l.classes {
		f, who := c.in, l.owner[c.Owner]
		isOpen, isBlocked := f.open.has(c.place), f.blocked.has(c.place)
		if f.classes[c.place] != c || f.owners[c.place] != who || f.shape != c.Shape || f.step != c.Step {
			return fmt.Errorf("class %d is not where it is filed", i)
		}
		if has := len(c.waiting.items) > 0; isOpen && isBlocked || (isOpen || isBlocked) != has {
			return fmt.Errorf("class %d of %d jobs is open %v and blocked %v", i, len(c.waiting.items), isOpen, isBlocked)
		}
		if isOpen {
			open[who]++
		} else if isBlocked {
			blocked[c.Shape]++
		}
	}
	tree := make([]int32, len(l.list))
	for who := range l.owners {
		o := &l.owners[who]
		if o.open != open[who] {
			return fmt.Errorf("owner %d has %d open classes, and is counted with %d", who, open[who], o.open)
		}
		tree[o.leaf] += min(1, o.open)
	}
	for shape, n := range blocked {
		if l.blocked[shape] != n {
			return fmt.Errorf("%d classes of shape %d are blocked, and %d are counted", n, shape, l.blocked[shape])
		}
	}
	for b := len(tree) - 1; b >= 0; b-- { // what is below a branch stands behind it
		if l.list[b].open != tree[b] {
			return fmt.Errorf("branch %d is counted with %d open, it has %d", b, l.list[b].open, tree[b])
		}
		if up := l.list[b].parent; up >= 0 {
			tree[up] += min(1, tree[b])
		}
	}
	return nil
}
