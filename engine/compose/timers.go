package compose

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
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

// reranks is when the next rank runs out. Where nobody runs who could give way there is nothing
// that another order of those who wait would change.
func (s *Scheduler) reranks() unit.Time {
	if s.rules.Preempt && !s.rules.Strict && len(s.lines.running.items) == 0 {
		return unit.Never
	}
	return s.lines.timers.next()
}

// expire ranks the jobs anew whose keys have run out.
func (s *Scheduler) expire(d *plan.Draft) {
	for {
		id, due := s.lines.timers.popDue(d.Now())
		if !due {
			return
		}
		if s.lines.home[id] == atRunning {
			key, until := s.parts.Order.Key(d.View, id)
			s.lines.running.rerank(item{key, id})
			s.lines.timers.set(until, id)
			s.reopenAll() // it may have to give way now
			continue
		}
		if s.able.ager != nil {
			if memo, changed := s.able.ager.Age(d.View, id); changed {
				d.Memo(id, memo)
			}
		}
		s.drop(d.View, id)
		s.file(d.View, id)
	}
}

// runsAs is the rank by which a job is filed among those that run, nil where it is not.
func (s *Scheduler) runsAs(id plan.JobID) *item {
	if !s.rules.Preempt || s.lines.home[id] != atRunning {
		return nil
	}
	is := s.lines.running.items[s.lines.pos[id]]
	return &is
}

// rankObserved ranks those anew who run and were observed: what they report may be what they are ranked by.
func (s *Scheduler) rankObserved(v plan.View, observed []schedule.Observation) {
	for i := range observed {
		id := observed[i].Job
		was := s.runsAs(id)
		if was == nil {
			continue
		}
		key, until := s.parts.Order.Key(v, id)
		s.lines.running.rerank(item{key, id})
		s.lines.timers.set(until, id)
		if was.before(&item{key, id}) {
			s.reopenAll() // it may have to give way now
		}
	}
}

// rankAnew ranks all jobs anew where so much has become known that ranks change before they were to.
func (s *Scheduler) rankAnew(d *plan.Draft) {
	if s.able.pupil == nil {
		return
	}
	since := s.able.pupil.Since(d.View)
	if since == s.lines.since {
		return
	}
	s.lines.since = since
	for id := range plan.JobID(len(s.lines.home)) {
		switch home := s.lines.home[id]; {
		case home == atRunning && s.rules.Preempt:
			key, until := s.parts.Order.Key(d.View, id)
			s.lines.running.rerank(item{key, id})
			s.lines.timers.set(until, id)
		case home >= 0:
			s.drop(d.View, id)
			s.file(d.View, id)
		}
	}
	s.reopenAll()
}
