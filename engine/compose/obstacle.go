package compose

import (
	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/obstacle"
)

// explain records why a job waits, when the kind of reason is a new one: by the rule that
// package explain asks as well. Where the order is strict, ahead is who goes first; own is
// the reason of a decider for all jobs.
func (s *Scheduler) explain(d *plan.Draft, job, ahead plan.JobID, own plan.Reason) {
	if !s.rules.Strict {
		ahead = plan.None
	}
	if why := s.obstacle(d, job, ahead, own); d.Job(job).Reason.Code != why.Code {
		d.Explain(job, why)
	}
}

// obstacle is what keeps a job from starting.
func (s *Scheduler) obstacle(d *plan.Draft, job, ahead plan.JobID, own plan.Reason) plan.Reason {
	n := d.Shape(job).Least()
	q := obstacle.Question{View: d.View, Job: job, Ledger: &s.claims.Ledger, Ahead: ahead, Own: own, Claims: s.agenda.Claims()}
	if !s.agenda.Empty() {
		q.Until = d.Now().Add(s.agenda.Length(d.View, job, n))
		q.Beside = func(claims bool, see func(v plan.View)) {
			if claims {
				d.Hold(s.agenda.Holds(agenda.At(d), job, n))
			} else {
				d.Hold(s.agenda.HoldsOfWindows(agenda.At(d), job, n))
			}
			see(d.View)
			d.Unhold()
		}
	}
	return q.Reason()
}
