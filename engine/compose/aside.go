package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// setAside takes a job out of its class that waits for a better place although there is
// room, since others of its class may want that room. Under a strict order nobody passes
// it: it is looked at again in time.
func (s *Scheduler) setAside(d *plan.Draft, job plan.JobID) bool {
	if until, _ := s.reactions.RepairedBy(d.View, job); until > d.Now() && !s.rules.Strict {
		s.room.Retry = min(s.room.Retry, until)
		s.lines.LayAside(job, !s.agenda.Empty())
		return true
	}
	if !s.able.patient {
		return false
	}
	p, ok := allocate.CanFor[allocate.Patient](s.parts.Placer, d.View, job)
	shape := d.Shape(job)
	if !ok || !shape.HasRoom(d.View, shape.Least()) && !s.placing.Finds(d.View, job) {
		return false
	}
	at := p.Retry(d.View, job)
	if at <= d.Now() {
		return false
	}
	if s.room.Retry = min(s.room.Retry, at); s.rules.Strict {
		return false
	}
	s.lines.LayAside(job, !s.agenda.Empty())
	if d.Job(job).Reason.Code != plan.Fragmented {
		d.Explain(job, plan.Reason{Code: plan.Fragmented, A: d.Room().FreeMilli(shape.Models)})
	}
	return true
}
