package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// setAside takes a job out of its class that waits for a better place although there is
// room, since others of its class may want that room. Under a strict order nobody passes
// it: it is looked at again in time.
func (s *Scheduler) setAside(d *plan.Draft, job plan.JobID) bool {
	if until, _ := s.repairedBy(d.View, job); until > d.Now() && !s.rules.Strict {
		s.lines.roomRetry = min(s.lines.roomRetry, until)
		s.lay(job, d)
		return true
	}
	if !s.able.patient {
		return false
	}
	p, ok := allocate.CanFor[allocate.Patient](s.parts.Placer, d.View, job)
	shape := d.Shape(job)
	if !ok || !roomFor(d.View, shape, smallest(shape)) && !s.finds(d.View, job) {
		return false
	}
	at := p.Retry(d.View, job)
	if at <= d.Now() {
		return false
	}
	if s.lines.roomRetry = min(s.lines.roomRetry, at); s.rules.Strict {
		return false
	}
	s.lay(job, d)
	if d.Job(job).Reason.Code != plan.Fragmented {
		d.Explain(job, plan.Reason{Code: plan.Fragmented, A: d.Room().FreeMilli(shape.Models)})
	}
	return true
}

// lay takes a job out of its class.
func (s *Scheduler) lay(job plan.JobID, d *plan.Draft) {
	s.drop(d.View, job)
	s.lines.active++
	s.lines.aside = append(s.lines.aside, job)
}

// recallAside files the jobs again that were set aside.
func (s *Scheduler) recallAside(d *plan.Draft) {
	for _, job := range s.lines.aside {
		if s.lines.active--; s.lines.home[job] == nowhere && d.Job(job).Phase == plan.Waiting {
			s.file(d.View, job)
		}
	}
	s.lines.aside = s.lines.aside[:0]
}
