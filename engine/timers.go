package engine

import (
	"github.com/musterdl/muster/mechanism/heap"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// timers are instants of jobs, the earliest first; equal instants go by job.
type timers struct{ h heap.Heap[timer] }

type timer struct {
	at  unit.Time
	job plan.JobID
}

func newTimers() timers {
	return timers{heap.Heap[timer]{Before: func(a, b *timer) bool { return a.at < b.at || a.at == b.at && a.job < b.job }}}
}

func (t *timers) add(at unit.Time, job plan.JobID) { t.h.Push(timer{at, job}) }

func (t *timers) next() unit.Time {
	if len(t.h.Items) == 0 {
		return unit.Never
	}
	return t.h.Items[0].at
}

func (t *timers) popDue(now unit.Time) (plan.JobID, bool) {
	if t.next() > now {
		return plan.None, false
	}
	return t.h.Pop().job, true
}
