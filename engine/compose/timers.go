package compose

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// reranks is when the next rank runs out. Where nobody runs who could give way there is nothing
// that another order of those who wait would change.
func (s *Scheduler) reranks() unit.Time {
	if _, ranked := s.lines.Lowest(); s.rules.Preempt && !s.rules.Strict && !ranked {
		return unit.Never
	}
	return s.lines.Expires()
}

// expire ranks the jobs anew whose keys have run out.
func (s *Scheduler) expire(d *plan.Draft) {
	for {
		id, due := s.lines.TakeExpired(d.Now())
		if !due {
			return
		}
		if s.lines.Runs(id) {
			s.rerank(d.View, id)
			s.lines.ReopenAll() // it may have to give way now
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

// rerank ranks a job anew that is ranked among those that run, and returns its rank.
func (s *Scheduler) rerank(v plan.View, id plan.JobID) item {
	key, until := s.parts.Order.Key(v, id)
	is := item{Key: key, Job: id}
	s.lines.Rerank(is)
	s.lines.Until(until, id)
	return is
}

// rankObserved ranks those anew who run and were observed: what they report may be what they are ranked by.
func (s *Scheduler) rankObserved(v plan.View, observed []schedule.Observation) {
	for i := range observed {
		id := observed[i].Job
		was, ranked := s.lines.Ranked(id)
		if !ranked {
			continue
		}
		if is := s.rerank(v, id); was.Before(&is) {
			s.lines.ReopenAll() // it may have to give way now
		}
	}
}

// rankAnew ranks all jobs anew where so much has become known that ranks change before they were to.
func (s *Scheduler) rankAnew(d *plan.Draft) {
	if s.able.pupil == nil {
		return
	}
	since := s.able.pupil.Since(d.View)
	if since == s.since {
		return
	}
	s.since = since
	for id := range plan.JobID(d.Jobs()) {
		if _, ranked := s.lines.Ranked(id); ranked {
			s.rerank(d.View, id)
		} else if s.lines.ClassOf(id) != nil {
			s.drop(d.View, id)
			s.file(d.View, id)
		}
	}
	s.lines.ReopenAll()
}
