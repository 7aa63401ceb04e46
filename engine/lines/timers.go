package lines

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// timers is a heap of (instant, job) with at most one live entry per job; entries
// that were set again are skipped when they come up.
type timers struct {
	heap []timer
	at   []unit.Time // by job: the live entry
}

type timer struct {
	at  unit.Time
	job plan.JobID
}

func (a timer) before(b timer) bool { return a.at < b.at || a.at == b.at && a.job < b.job }

func (t *timers) grow() { t.at = append(t.at, unit.Never) }

// set replaces a job's entry; Never takes it out.
func (t *timers) set(at unit.Time, job plan.JobID) {
	if t.at[job] == at {
		return
	}
	t.at[job] = at
	if at == unit.Never {
		return
	}
	t.heap = append(t.heap, timer{at, job})
	for i := len(t.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !t.heap[i].before(t.heap[parent]) {
			break
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

// next is the earliest live entry.
func (t *timers) next() unit.Time {
	for len(t.heap) > 0 {
		if top := t.heap[0]; t.at[top.job] == top.at {
			return top.at
		}
		t.pop()
	}
	return unit.Never
}

// popDue takes out the earliest live entry that has come.
func (t *timers) popDue(now unit.Time) (plan.JobID, bool) {
	if t.next() > now {
		return plan.None, false
	}
	job := t.heap[0].job
	t.pop()
	t.at[job] = unit.Never
	return job, true
}

func (t *timers) pop() {
	last := len(t.heap) - 1
	t.heap[0] = t.heap[last]
	t.heap = t.heap[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if t.heap[c].before(t.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		t.heap[i], t.heap[least] = t.heap[least], t.heap[i]
		i = least
	}
}
