package lines

import wanted "github.com/musterdl/muster/mechanism/heap"

// ranked is a job of a class, by its place in the heap of that.
type ranked struct {
	class *Class
	at    int
}

// BestFirst calls take with those who wait, the best first, of those whose shape fits when it is their turn. What
// follows from it follows from who waits, and not from how they came to be filed.
func (l *Lines) BestFirst(fits func(shape int32) bool, take func(job *Item)) {
	h := wanted.Heap[ranked]{Items: l.best[:0], Before: firstRanked}
	defer func() { l.best = h.Items }()
	for _, c := range l.classes {
		if len(c.waiting.items) > 0 && fits(c.Shape) {
			h.Items = append(h.Items, ranked{c, 0})
		}
	}
	for h.Init(); len(h.Items) > 0; {
		x := h.Pop()
		items := x.class.waiting.items
		if !fits(x.class.Shape) {
			continue // nor do those behind it
		}
		for below := 2*x.at + 1; below < min(2*x.at+3, len(items)); below++ {
			h.Push(ranked{x.class, below})
		}
		take(&items[x.at])
	}
}

// firstRanked is the order of BestFirst.
func firstRanked(a, b *ranked) bool {
	return a.class.waiting.items[a.at].Before(&b.class.waiting.items[b.at])
}
