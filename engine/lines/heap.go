package lines

import (
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Item is a ranked job.
type Item struct {
	Key      schedule.Key
	Job      plan.JobID
	Priority int32 // of a job that waits, where queues count it
}

// Before is the order of keys; most differ in their first figure.
func (a *Item) Before(b *Item) bool {
	if a.Key[0] != b.Key[0] {
		return a.Key[0] < b.Key[0]
	}
	return a.Key.Compare(a.Job, b.Key, b.Job) < 0
}

// heap is a binary heap of ranked jobs that knows where each job is, so that one
// can be taken out or ranked anew. Best first, or worst first. Package mechanism/heap
// has one that does not know where things are.
type heap struct {
	items []Item
	pos   *[]int32 // by job: index in its heap; shared by all heaps, a job is in one
	worst bool
}

// ahead reports whether one goes nearer to the top than another.
func (h *heap) ahead(a, b *Item) bool {
	if h.worst {
		a, b = b, a
	}
	return a.Before(b)
}

// put lays an item down at an index.
func (h *heap) put(i int, it Item) {
	h.items[i] = it
	(*h.pos)[it.Job] = int32(i)
}

func (h *heap) push(it Item) {
	h.items = append(h.items, it)
	h.up(len(h.items)-1, it)
}

func (h *heap) remove(job plan.JobID) {
	i, last := int((*h.pos)[job]), len(h.items)-1
	it := h.items[last]
	h.items = h.items[:last]
	if i < last {
		h.fix(i, it)
	}
	(*h.pos)[job] = -1
}

// rerank gives a job of this heap another key.
func (h *heap) rerank(it Item) {
	h.fix(int((*h.pos)[it.Job]), it)
}

// fix lays an item down at an index, or below or above it, where it belongs.
func (h *heap) fix(i int, it Item) {
	if !h.down(i, it) {
		h.up(i, it)
	}
}

func (h *heap) up(i int, it Item) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.ahead(&it, &h.items[parent]) {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, it)
}

// down lays an item down at an index or below it, and reports whether below.
func (h *heap) down(i int, it Item) bool {
	start := i
	for {
		c := 2*i + 1
		if c+1 < len(h.items) && h.ahead(&h.items[c+1], &h.items[c]) {
			c++
		}
		if c >= len(h.items) || !h.ahead(&h.items[c], &it) {
			break
		}
		h.put(i, h.items[c])
		i = c
	}
	h.put(i, it)
	return i > start
}
