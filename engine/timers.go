package engine

import (
	"container/heap"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// timers is a heap of (instant, job); equal instants go by job.
type timers struct{ h timerHeap }

type timer struct {
	at  unit.Time
	job plan.JobID
}

type timerHeap []timer

// Len is how many there are.
func (h timerHeap) Len() int { return len(h) }

// Less orders timers by their time, and then by job.
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].job < h[j].job
}

// Swap is for package heap.
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is for package heap.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

// Pop is for package heap.
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}

func (t *timers) add(at unit.Time, job plan.JobID) { heap.Push(&t.h, timer{at, job}) }

func (t *timers) next() unit.Time {
	if len(t.h) == 0 {
		return unit.Never
	}
	return t.h[0].at
}

func (t *timers) popDue(now unit.Time) (plan.JobID, bool) {
	if t.next() > now {
		return plan.None, false
	}
	return heap.Pop(&t.h).(timer).job, true
}
