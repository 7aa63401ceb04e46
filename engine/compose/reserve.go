package compose

import (
	"slices"
	"sort"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// openCalendar shows the calendar the state as a decision finds it: claims of jobs that wait
// no more are dropped, the others revised. Room that is not held any longer is worth a
// try.
func (s *Scheduler) openCalendar(d *plan.Draft) {
	c := &s.agenda.calendar
	for len(c.Claims()) > 0 {
		c.Drop(c.Claims()[0].Job)
	}
	firm := 0 // claims within a guarantee go before others
	for _, claim := range d.Claims() {
		if d.Job(claim.Job).Phase != plan.Waiting || s.never(d.View, claim.Job) || !s.mayHave(d.View, &claim) {
			continue
		}
		if s.claims.tree.guaranteed(d.View, claim.Job) {
			c.Insert(firm, claim)
			firm++
		} else {
			c.Insert(len(c.Claims()), claim)
		}
	}
	c.SetWindows(d.Windows())
	s.agenda.overdue = unit.Never
	if !c.Empty() {
		s.updateCalendar(d)
		s.revise()
	}
	if !slices.EqualFunc(c.Claims(), d.Claims(), plan.Claim.Equal) {
		s.reopenAll()
	}
}

// mayEver are the models, of a set, of which a job could have as many workers if nobody held anything.
func (s *Scheduler) mayEver(v plan.View, job plan.JobID, models uint64, workers int32) uint64 {
	models, _ = v.MayEver(&s.claims.tree.Ledger, job, models, v.Shape(job).Milli(workers))
	return models
}

// mayHave reports whether a claim is on devices that its queues still let the job have.
func (s *Scheduler) mayHave(v plan.View, claim *plan.Claim) bool {
	all := v.Shape(claim.Job).Models
	models := s.mayEver(v, claim.Job, all, claim.Workers)
	return models == all || !slices.ContainsFunc(claim.Parts, func(p plan.Part) bool { return models&(1<<v.Node(p.Node).Model) == 0 })
}

// updateCalendar tells the calendar what is free and what runs.
func (s *Scheduler) updateCalendar(d *plan.Draft) {
	s.agenda.overdue = s.agenda.calendar.Look(d.View, func(run plan.RunID) (unit.Time, bool) { return s.expected(d.View, run) })
	s.agenda.looked = d.Turns()
}

// hold works out what others have a claim on while a job is placed. What
// a queue is guaranteed goes before the claims of jobs that are not: a gang that
// borrows has no bound on its wait but the guarantees of others.
func (s *Scheduler) hold(d *plan.Draft, job plan.JobID, n int32) {
	if s.agenda.calendar.Empty() {
		s.agenda.leftOut, s.agenda.holds = s.agenda.leftOut[:0], s.agenda.holds[:0]
		return
	}
	if s.agenda.looked != d.Turns() {
		s.updateCalendar(d)
	}
	s.agenda.held = true
	of := heldOf{job, n, s.agenda.calendar.Turns()}
	if s.agenda.heldOf == of {
		return
	}
	s.agenda.leftOut, s.agenda.holds, s.agenda.heldOf = s.agenda.leftOut[:0], s.agenda.holds[:0], of
	until := d.Now().Add(s.length(d.View, job, n))
	if s.claims.tree.guaranteed(d.View, job) {
		for rank, c := range s.agenda.calendar.Claims() {
			if c.Job != job && !s.claims.tree.guaranteed(d.View, c.Job) {
				s.agenda.leftOut = append(s.agenda.leftOut, rank)
			}
		}
	}
	s.agenda.holds = s.agenda.calendar.HoldsWithout(s.agenda.leftOut, job, until, s.agenda.holds[:0])
}

// claimed starts a job that has a claim and that no better one of its class keeps
// from its turn: room that is held for it is nobody else's.
func (s *Scheduler) claimed(d *plan.Draft) bool {
	for _, claim := range s.agenda.calendar.Claims() {
		if s.lines.home[claim.Job] < 0 || s.mustWait(d, &claim) {
			continue
		}
		key, _ := s.parts.Order.Key(d.View, claim.Job)
		it := item{key, claim.Job}
		if s.placed(d, it, s.ahead(d.View, s.lines.classes[s.lines.home[claim.Job]].leaf, it), plan.None) {
			return true
		}
	}
	return false
}

// mustWait reports whether the calendar has said in this decision that a job with a claim has no room before
// it, nothing gave room up since, and the job may ask for nothing but free room. A run without an end would
// meet those who have a claim on what nobody knows the end of, which the calendar minds and a start does not.
func (s *Scheduler) mustWait(d *plan.Draft, claim *plan.Claim) bool {
	if s.agenda.revised != d.Turns() || min(claim.At, claim.Due) <= d.Now() || s.rules.Preempt || s.round != nil || s.parts.Sharer != nil || s.able.finder || s.moves() {
		return false
	}
	shape := d.Shape(claim.Job)
	return shape.Share == 1000 && shape.Devices > 0 && claim.Length < unit.Forever && s.length(d.View, claim.Job, claim.Workers) >= claim.Length &&
		!s.takesBack(d.View, &s.lines.classes[s.lines.home[claim.Job]]) && !s.claims.tree.guaranteed(d.View, claim.Job)
}

// putOff revises the calendar when starts did not mind all claims, and reports whether
// that left room for others: what a claim no longer needs so early.
func (s *Scheduler) putOff(d *plan.Draft) bool {
	if !s.agenda.overruled || s.agenda.calendar.Empty() {
		s.agenda.overruled = false
		return false
	}
	s.agenda.overruled = false
	s.updateCalendar(d)
	if !s.revise() {
		return false
	}
	s.reopenAll()
	return true
}

// revise moves claims until none moves any more, since one that moves may make room
// for another; a decision that is asked for again at the same moment must find nothing
// to do. It reports whether any moved.
func (s *Scheduler) revise() (moved bool) {
	s.agenda.revised = plan.None
	for range 16 {
		before := slices.Clone(s.agenda.calendar.Claims())
		s.agenda.calendar.Revise(nil)
		if slices.EqualFunc(before, s.agenda.calendar.Claims(), plan.Claim.Equal) {
			s.agenda.revised = s.agenda.looked
			break
		}
		moved = true
	}
	return moved
}

// note tells the calendar of a run that was just promised.
func (s *Scheduler) note(d *plan.Draft, run plan.RunID) {
	if !s.agenda.calendar.Empty() && s.agenda.looked == d.Turns()-1 {
		end, _ := s.expected(d.View, run)
		s.agenda.calendar.Started(run, end)
		if s.agenda.revised == s.agenda.looked {
			s.agenda.revised++ // there is only less room
		}
		s.agenda.looked, s.agenda.overdue = d.Turns(), min(s.agenda.overdue, max(end, d.Now()+1))
	}
}

// reserve gives a job that does not fit a place in the calendar, if it is its turn,
// and reports whether that place is this moment.
func (s *Scheduler) reserve(d *plan.Draft, job plan.JobID) bool {
	if s.making.why.Code != plan.NoReason || s.agenda.calendar.Find(job) >= 0 {
		return false
	}
	rank := s.rankOfClaim(d.View, job)
	if rank >= s.parts.Reserve.Depth {
		return false
	}
	f := s.parts.Reserve.Foresight
	if f != nil && !f.Claims(d.View, job, smallest(d.Shape(job))) {
		return false
	}
	alike := 1
	if home := s.lines.home[job]; home >= 0 {
		alike = len(s.lines.classes[home].waiting.items)
	}
	return s.claim(d, job, rank, func(at unit.Time) bool { return f == nil || f.Pays(d.View, job, alike, at) }) <= d.Now()
}

// rankOfClaim is where a claim of a job stands: behind all others, but that of a job that lost its run with a node
// before those of jobs that rank behind it. They got theirs while it ran, and needed none before it.
func (s *Scheduler) rankOfClaim(v plan.View, job plan.JobID) int {
	claims := s.agenda.calendar.Claims()
	rank := len(claims)
	if r := v.Job(job).Reason; s.round != nil || r.Code != plan.NodeLost && r != (plan.Reason{Code: plan.RunFailed, A: int64(plan.NodeFailure)}) {
		return rank
	}
	key, _ := s.parts.Order.Key(v, job)
	for it := (item{key, job}); rank > 0; rank-- {
		behind, _ := s.parts.Order.Key(v, claims[rank-1].Job)
		if !it.before(&item{behind, claims[rank-1].Job}) {
			break
		}
	}
	return rank
}

// expected is when a run is expected to end, as the policy has it.
func (s *Scheduler) expected(v plan.View, run plan.RunID) (end unit.Time, steady bool) {
	if f := s.parts.Reserve.Foresight; f != nil {
		return f.Expected(v, run)
	}
	return calendar.Expected(v, run)
}

// length is how long a run of a job is expected to take, as the policy has it.
func (s *Scheduler) length(v plan.View, job plan.JobID, workers int32) unit.Duration {
	if f := s.parts.Reserve.Foresight; f != nil {
		return f.Length(v, job, workers)
	}
	return calendar.Length(v, job, workers)
}

// claim returns the instant of the place that a job gets beside the claims before its rank, if it pays; Never if there is
// none. Those behind give way to it, the last of them for good where there are too many now.
func (s *Scheduler) claim(d *plan.Draft, job plan.JobID, rank int, pays func(at unit.Time) bool) unit.Time {
	if s.agenda.calendar.Empty() || s.agenda.looked != d.Turns() {
		s.updateCalendar(d)
	}
	behind := slices.Clone(s.agenda.calendar.Claims()[rank:])
	for _, c := range behind {
		s.agenda.calendar.Drop(c.Job)
	}
	n := smallest(d.Shape(job))
	claim, ok := s.agenda.calendar.Earliest(job, n, s.length(d.View, job, n))
	if ok = ok && pays(claim.At); ok {
		s.agenda.calendar.Insert(rank, claim)
		if len(behind) > 0 {
			behind = behind[:min(len(behind), s.parts.Reserve.Depth-rank-1)]
			s.agenda.overruled = true
		}
	}
	for _, c := range behind {
		s.agenda.calendar.Insert(len(s.agenda.calendar.Claims()), c)
	}
	if !ok {
		return unit.Never
	}
	return claim.At
}

// claimForOldest gives the oldest job that waits a claim when it has waited long enough. One
// that its queue's limits hold back is passed over.
func (s *Scheduler) claimForOldest(d *plan.Draft) {
	patience := s.parts.Reserve.Patience
	s.agenda.claimDue = unit.Never
	if patience == 0 {
		return
	}
	for ; int(s.agenda.oldest) < d.Jobs(); s.agenda.oldest++ {
		if p := d.Job(s.agenda.oldest).Phase; !p.Over() && p != plan.Active {
			break
		}
	}
	// Jobs are numbered as they come.
	young := plan.JobID(sort.Search(d.Jobs(), func(id int) bool { return d.Now().Sub(d.Job(plan.JobID(id)).Submit) < patience }))
	for id := s.agenda.oldest; id < young; id++ {
		if s.lines.home[id] < 0 && s.lines.home[id] != inLine || d.Job(id).Phase != plan.Waiting {
			continue
		}
		if s.agenda.calendar.Find(id) >= 0 {
			return
		}
		shape := d.Shape(id)
		if models, _ := d.MayTake(&s.claims.tree.Ledger, id, shape.Models, shape.Milli(smallest(shape))); models != 0 {
			s.claim(d, id, len(s.agenda.calendar.Claims()), func(unit.Time) bool { return true })
			return
		}
	}
	if next := max(young, s.agenda.oldest); int(next) < d.Jobs() {
		s.agenda.claimDue = d.Job(next).Submit.Add(patience)
	}
}

// closeCalendar keeps the calendar in the state.
func (s *Scheduler) closeCalendar(d *plan.Draft) {
	if s.agenda.calendar.Empty() {
		s.agenda.overdue = unit.Never
	}
	d.Reserve(s.agenda.calendar.Claims())
}
