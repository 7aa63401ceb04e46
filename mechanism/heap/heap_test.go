package heap_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/mechanism/heap"
)

// The first of a heap is the first of a sorted list to which the same is done.
func TestHeap(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		h := heap.Heap[int]{Items: rapid.SliceOf(rapid.IntRange(0, 30)).Draw(t, "items"), Before: func(a, b *int) bool { return *a < *b }}
		h.Init()
		sorted := slices.Sorted(slices.Values(h.Items))
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			x := rapid.IntRange(0, 30).Draw(t, "x")
			switch rapid.IntRange(0, 2).Draw(t, "does") {
			case 0:
				h.Push(x)
				sorted = append(sorted, x)
			case 1:
				if len(sorted) > 0 {
					if first := h.Pop(); first != sorted[0] {
						t.Fatalf("%d is first, not %d", first, sorted[0])
					}
					sorted = sorted[1:]
				}
			case 2:
				if len(sorted) > 0 {
					h.Replace(x)
					sorted[0] = x
				}
			}
			slices.Sort(sorted)
			if len(h.Items) != len(sorted) || len(sorted) > 0 && h.Items[0] != sorted[0] {
				t.Fatalf("%v, sorted %v", h.Items, sorted)
			}
		}
	})
}
