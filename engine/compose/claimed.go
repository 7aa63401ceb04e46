package compose

import (
	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/plan"
)

// claimed starts a job that has a claim and that no better one of its class keeps
// from its turn: room that is held for it is nobody else's.
func (s *Scheduler) claimed(d *plan.Draft) bool {
	for _, claim := range s.agenda.Claims() {
		c := s.lines.ClassOf(claim.Job)
		if c == nil || s.mustWait(d, &claim) {
			continue
		}
		key, _ := s.parts.Order.Key(d.View, claim.Job)
		it := item{Key: key, Job: claim.Job}
		if s.placed(d, it, s.lines.Ahead(c.Leaf, it), plan.None).Workers > 0 {
			return true
		}
	}
	return false
}

// mustWait reports whether a job with a claim has no room before that, as nothing gave room up since the
// calendar said so, and the job may ask for nothing but free room.
func (s *Scheduler) mustWait(d *plan.Draft, claim *plan.Claim) bool {
	if !s.agenda.Waits(agenda.At(d), claim) || s.rules.Preempt || s.round != nil || s.parts.Sharer != nil || s.placing.MayFind() || s.room.Moves() {
		return false
	}
	shape := d.Shape(claim.Job)
	return shape.Share == 1000 && shape.Devices > 0 &&
		!s.files.TakesBack(d.View, s.lines.ClassOf(claim.Job)) && !s.claims.WithinGuarantee(d.View, claim.Job)
}
