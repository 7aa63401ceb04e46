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

func (h *heap) before(i, j int) bool {
	if h.worst {
		i, j = j, i
	}
	return h.items[i].before(&h.items[j])
}

func (h *heap) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	(*h.pos)[h.items[i].job] = int32(i)
	(*h.pos)[h.items[j].job] = int32(j)
}

func (h *heap) push(it item) {
	h.items = append(h.items, it)
	(*h.pos)[it.job] = int32(len(h.items) - 1)
	h.up(len(h.items) - 1)
}

func (h *heap) remove(job plan.JobID) {
	i, last := int((*h.pos)[job]), len(h.items)-1
	h.swap(i, last)
	h.items = h.items[:last]
	if i < last {
		h.fix(i)
	}
	(*h.pos)[job] = -1
}

// rerank gives a job of this heap another key.
func (h *heap) rerank(it item) {
	i := int((*h.pos)[it.job])
	h.items[i] = it
	h.fix(i)
}

func (h *heap) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap) down(i int) bool {
	start := i
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.items); c++ {
			if h.before(c, least) {
				least = c
			}
		}
		if least == i {
			return i > start
		}
		h.swap(i, least)
		i = least
	}
}
