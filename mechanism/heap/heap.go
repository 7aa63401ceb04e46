// Package heap keeps things of which the first is wanted again and again. Unlike container/heap it puts nothing
// on the heap of the process for each of them.
package heap

// Heap is a binary heap in the order of Before, which is to be total where it matters who of equals comes first.
type Heap[T any] struct {
	Items  []T // the first of all is at 0; may be set as a whole, before Init
	Before func(a, b *T) bool
}

// Init puts the items in order, whatever theirs was.
func (h *Heap[T]) Init() {
	for i := len(h.Items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Push adds an item.
func (h *Heap[T]) Push(x T) {
	h.Items = append(h.Items, x)
	for i := len(h.Items) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.Before(&h.Items[i], &h.Items[up]) {
			return
		}
		h.Items[i], h.Items[up] = h.Items[up], h.Items[i]
		i = up
	}
}

// Pop takes the first item out; there must be one.
func (h *Heap[T]) Pop() T {
	first, last := h.Items[0], len(h.Items)-1
	h.Items[0] = h.Items[last]
	h.Items = h.Items[:last]
	h.down(0)
	return first
}

// Replace puts another item in the place of the first.
func (h *Heap[T]) Replace(by T) {
	h.Items[0] = by
	h.down(0)
}

// down lets an item sink to where it belongs.
func (h *Heap[T]) down(i int) {
	for {
		first := 2*i + 1
		if first >= len(h.Items) {
			return
		}
		if other := first + 1; other < len(h.Items) && h.Before(&h.Items[other], &h.Items[first]) {
			first = other
		}
		if !h.Before(&h.Items[first], &h.Items[i]) {
			return
		}
		h.Items[i], h.Items[first] = h.Items[first], h.Items[i]
		i = first
	}
}
