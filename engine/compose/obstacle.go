package compose

import (
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

// never reports whether a job can never start here: it is filed nowhere then, until the engine names it
// again because the cluster or its queues are others.
func (s *Scheduler) never(v plan.View, job plan.JobID) bool {
	return obstacle.Never(v, &s.claims.tree.Ledger, job).Code != plan.NoReason
}

// obstacle is what keeps a job from starting.
func (s *Scheduler) obstacle(d *plan.Draft, job, ahead plan.JobID, own plan.Reason) plan.Reason {
	n := d.Shape(job).Least()
	q := obstacle.Question{View: d.View, Job: job, Ledger: &s.claims.tree.Ledger, Ahead: ahead, Own: own, Claims: s.agenda.calendar.Claims()}
	if !s.agenda.calendar.Empty() {
		until := d.Now().Add(s.length(d.View, job, n))
		q.Until = until
		q.Beside = func(claims bool, see func(v plan.View)) {
			if claims {
				s.hold(d, job, n)
			} else {
				if s.agenda.looked != d.Turns() {
					s.updateCalendar(d)
				}
				s.agenda.holds, s.agenda.heldOf = s.agenda.calendar.HoldsOfWindows(job, until, s.agenda.holds[:0]), heldOf{}
			}
			d.Hold(s.agenda.holds)
			see(d.View)
			d.Unhold()
		}
	}
	return q.Reason()
}
