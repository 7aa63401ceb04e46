package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// setAside takes a job out of its class that waits for a better place although there is
// room, since others of its class may want that room.
func (s *Scheduler) setAside(d *plan.Draft, job plan.JobID) bool {
	p, ok := allocate.For(s.parts.Placer, d.View, job).(allocate.Patient)
	shape := d.Shape(job)
	if !ok || s.rules.Strict || !roomFor(d.View, shape, smallest(shape)) {
		return false
	}
	if at := p.Retry(d.View, job); at > d.Now() {
		s.patient = min(s.patient, at)
	}
	s.drop(d.View, job)
	s.active++
	s.aside = append(s.aside, job)
	if d.Job(job).Reason.Code != plan.Fragmented {
		d.Explain(job, plan.Reason{Code: plan.Fragmented, A: d.Room().FreeMilli(shape.Models)})
	}
	return true
}

// recallAside files the jobs again that were set aside.
func (s *Scheduler) recallAside(d *plan.Draft) {
	for _, job := range s.aside {
		if s.active--; s.home[job] == nowhere && d.Job(job).Phase == plan.Waiting {
			s.file(d.View, job)
		}
	}
	s.aside = s.aside[:0]
}
