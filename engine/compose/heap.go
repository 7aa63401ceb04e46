package compose

import (
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// item is a ranked job.
type item struct {
	key schedule.Key
	job plan.JobID
}

// before is the order of keys; most differ in their first figure.
func (a *item) before(b *item) bool {
	if a.key[0] != b.key[0] {
		return a.key[0] < b.key[0]
	}
	return a.key.Compare(a.job, b.key, b.job) < 0
}

// heap is a binary heap of ranked jobs that knows where each job is, so that one
// can be taken out or ranked anew. Best first, or worst first.
type heap struct {
	items []item
	pos   *[]int32 // by job: index in its heap; shared by all heaps, a job is in one
	worst bool
}

// ahead reports whether one goes nearer to the top than another.
func (h *heap) ahead(a, b *item) bool {
	if h.worst {
		a, b = b, a
	}
	return a.before(b)
}

// put lays an item down at an index.
func (h *heap) put(i int, it item) {
	h.items[i] = it
	(*h.pos)[it.job] = int32(i)
}

func (h *heap) push(it item) {
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
func (h *heap) rerank(it item) {
	h.fix(int((*h.pos)[it.job]), it)
}

// fix lays an item down at an index, or below or above it, where it belongs.
func (h *heap) fix(i int, it item) {
	if !h.down(i, it) {
		h.up(i, it)
	}
}

func (h *heap) up(i int, it item) {
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
func (h *heap) down(i int, it item) bool {
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
