package compose

import (
	"slices"

	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/plan"
)

// moment is a draft as the agenda sees it.
func moment(d *plan.Draft) agenda.Moment { return agenda.Moment{View: d.View, Turn: d.Turns()} }

// openCalendar opens the agenda for a decision. Room that is not held any longer is worth a try.
func (s *Scheduler) openCalendar(d *plan.Draft) {
	if s.agenda.Open(moment(d), func(c *plan.Claim) bool {
		return d.Job(c.Job).Phase == plan.Waiting && !s.never(d.View, c.Job) && s.mayHave(d.View, c)
	}) {
		s.lines.ReopenAll()
	}
}

// mayEver are the models, of a set, of which a job could have as many workers if nobody held anything.
func (s *Scheduler) mayEver(v plan.View, job plan.JobID, models uint64, workers int32) uint64 {
	models, _ = v.MayEver(&s.claims.Ledger, job, models, v.Shape(job).Milli(workers))
	return models
}

// mayHave reports whether a claim is on devices that its queues still let the job have.
func (s *Scheduler) mayHave(v plan.View, claim *plan.Claim) bool {
	all := v.Shape(claim.Job).Models
	models := s.mayEver(v, claim.Job, all, claim.Workers)
	return models == all || !slices.ContainsFunc(claim.Parts, func(p plan.Part) bool { return models&(1<<v.Node(p.Node).Model) == 0 })
}

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
	if !s.agenda.Waits(moment(d), claim) || s.rules.Preempt || s.round != nil || s.parts.Sharer != nil || s.placing.MayFind() || s.room.Moves() {
		return false
	}
	shape := d.Shape(claim.Job)
	return shape.Share == 1000 && shape.Devices > 0 &&
		!s.takesBack(d.View, s.lines.ClassOf(claim.Job)) && !s.claims.WithinGuarantee(d.View, claim.Job)
}

// putOff revises the calendar when starts went over claims, has those tried for whom that left room, and
// returns whether there may be any.
func (s *Scheduler) putOff(d *plan.Draft) (moved bool) {
	if moved = s.agenda.PutOff(moment(d)); moved {
		s.lines.ReopenAll()
	}
	return moved
}

// reserve gives a job that does not fit a place in the calendar, if it is its turn,
// and reports whether that place is this moment.
func (s *Scheduler) reserve(d *plan.Draft, job plan.JobID, why placing.Why) bool {
	if why.Bar.Code != plan.NoReason || s.agenda.Has(job) {
		return false
	}
	rank := s.rankOfClaim(d.View, job)
	if rank >= s.parts.Reserve.Depth {
		return false
	}
	alike := 1
	if c := s.lines.ClassOf(job); c != nil {
		alike = len(c.Items())
	}
	return s.agenda.Reserve(moment(d), job, rank, alike) <= d.Now()
}

// rankOfClaim is where a claim of a job stands: behind all others, but that of a job that lost its run with a node
// before those of jobs that rank behind it. They got theirs while it ran, and needed none before it.
func (s *Scheduler) rankOfClaim(v plan.View, job plan.JobID) int {
	claims := s.agenda.Claims()
	rank := len(claims)
	if r := v.Job(job).Reason; s.round != nil || r.Code != plan.NodeLost && r != (plan.Reason{Code: plan.RunFailed, A: int64(plan.NodeFailure)}) {
		return rank
	}
	key, _ := s.parts.Order.Key(v, job)
	for it := (item{Key: key, Job: job}); rank > 0; rank-- {
		behind, _ := s.parts.Order.Key(v, claims[rank-1].Job)
		if !it.Before(&item{Key: behind, Job: claims[rank-1].Job}) {
			break
		}
	}
	return rank
}

// claimForOldest gives the oldest job that waits a claim when it has waited long enough. One that its queue's limits
// hold back is passed over.
func (s *Scheduler) claimForOldest(d *plan.Draft) {
	waits := func(id plan.JobID) bool {
		return (s.lines.ClassOf(id) != nil || s.lines.InLine(id)) && d.Job(id).Phase == plan.Waiting
	}
	s.agenda.ReserveForOldest(moment(d), waits, func(id plan.JobID) bool {
		shape := d.Shape(id)
		models, _ := d.MayTake(&s.claims.Ledger, id, shape.Models, shape.Milli(shape.Least()))
		return models != 0
	})
}
