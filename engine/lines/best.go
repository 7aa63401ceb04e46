package lines

import (
	"slices"

	wanted "github.com/musterdl/muster/mechanism/heap"
)

// BestFirst calls take with those who wait, class after class in order of their best jobs, in each the best first, as long
// as its shape fits. What follows from it follows from who waits, and not from how they came to be filed.
func (l *Lines) BestFirst(fits func(shape int32) bool, take func(job *Item)) {
	heads := l.heads[:0]
	for _, c := range l.classes {
		if len(c.waiting.items) > 0 && fits(c.Shape) {
			heads = append(heads, c)
		}
	}
	slices.SortFunc(heads, func(a, b *Class) int { return a.Best().Key.Compare(a.Best().Job, b.Best().Key, b.Best().Job) })
	for _, c := range heads {
		items := c.waiting.items
		next := wanted.Heap[int]{Items: append(l.next[:0], 0), Before: func(a, b *int) bool { return items[*a].Before(&items[*b]) }}
		for len(next.Items) > 0 && fits(c.Shape) {
			at := next.Pop()
			for below := 2*at + 1; below < min(2*at+3, len(items)); below++ {
				next.Push(below)
			}
			take(&items[at])
		}
		l.next = next.Items
	}
	l.heads = heads
}
