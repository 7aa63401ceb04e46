package agenda

import (
	"slices"
	"sort"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Reserve gives a job that does not fit a claim of a rank, if the policy has it claim and its
// place pays, where so many wait who are alike. It returns the instant of that place, which may
// be this moment; Never if there is none.
func (a *Agenda) Reserve(at Moment, job plan.JobID, rank, alike int) unit.Time {
	if !a.sees.Claims(at.View, job, at.Shape(job).Least()) {
		return unit.Never
	}
	return a.claim(at, job, rank, func(t unit.Time) bool { return a.sees.Pays(at.View, job, alike, t) })
}

// claim gives a job a place beside the claims before its rank, if it pays, and returns its
// instant; Never if there is none. Those behind give way to it, the last of them for good where
// there are too many now.
func (a *Agenda) claim(at Moment, job plan.JobID, rank int, pays func(at unit.Time) bool) unit.Time {
	if a.calendar.Empty() || a.looked != at.Turn {
		a.show(at)
	}
	behind := slices.Clone(a.calendar.Claims()[rank:])
	for _, c := range behind {
		a.calendar.Drop(c.Job)
	}
	n := at.Shape(job).Least()
	claim, ok := a.calendar.Earliest(job, n, a.sees.Length(at.View, job, n))
	if ok = ok && pays(claim.At); ok {
		a.calendar.Insert(rank, claim)
		if len(behind) > 0 {
			behind = behind[:min(len(behind), a.policy.Depth-rank-1)]
			a.passed = true
		}
	}
	for _, c := range behind {
		a.calendar.Insert(len(a.calendar.Claims()), c)
	}
	if !ok {
		return unit.Never
	}
	return claim.At
}

// ReserveForOldest gives the oldest job that waits a claim, whatever its rank, when it has
// waited for as long as the policy says. One that may not have room, as its queue's limits hold
// it back, is passed over.
func (a *Agenda) ReserveForOldest(at Moment, waits, may func(job plan.JobID) bool) {
	patience := a.policy.Patience
	a.claimDue = unit.Never
	if patience == 0 {
		return
	}
	for ; int(a.oldest) < at.Jobs(); a.oldest++ {
		if p := at.Job(a.oldest).Phase; !p.Over() && p != plan.Active {
			break
		}
	}
	// Jobs are numbered as they come.
	young := plan.JobID(sort.Search(at.Jobs(), func(id int) bool { return at.Now().Sub(at.Job(plan.JobID(id)).Submit) < patience }))
	for id := a.oldest; id < young; id++ {
		switch {
		case !waits(id):
		case a.Has(id):
			return
		case may(id):
			a.claim(at, id, len(a.calendar.Claims()), func(unit.Time) bool { return true })
			return
		}
	}
	if next := max(young, a.oldest); int(next) < at.Jobs() {
		a.claimDue = at.Job(next).Submit.Add(patience)
	}
}

// Waits reports whether the calendar has said at this turn that a job has no room before the
// time of its claim, which is to come, and the job takes no less time than it claimed. Of one
// without an end nothing is said: it would meet those who have a claim on what nobody knows the
// end of, which the calendar minds and a start does not.
func (a *Agenda) Waits(at Moment, claim *plan.Claim) bool {
	return a.revised == at.Turn && min(claim.At, claim.Due) > at.Now() &&
		claim.Length < unit.Forever && a.sees.Length(at.View, claim.Job, claim.Workers) >= claim.Length
}

// Fulfil ends the claim of the job that was placed last, and has started, and notes whether it
// went over the claims of others. It returns whether it had one: what it claimed may be
// elsewhere than where it started.
func (a *Agenda) Fulfil(job plan.JobID) (claimed bool) {
	if claimed = a.Has(job); claimed {
		a.calendar.Drop(job)
		a.revised = plan.None
	}
	a.passed = a.passed || len(a.kept.leftOut) > 0
	return claimed
}

// Overrule notes that a start stopped others, so that their claims and what they leave are to be
// looked at again.
func (a *Agenda) Overrule() { a.passed = true }

// PutOff revises the claims where starts went over some of them. It returns whether any moved,
// and with that left room for others: what a claim no longer needs so early.
func (a *Agenda) PutOff(at Moment) (moved bool) {
	passed := a.passed
	if a.passed = false; !passed || a.calendar.Empty() {
		return false
	}
	a.show(at)
	return a.revise()
}

// revise moves claims until none moves any more, since one that moves may make room
// for another; a decision that is asked for again at the same moment must find nothing
// to do. It returns whether any moved.
func (a *Agenda) revise() (moved bool) {
	a.revised = plan.None
	for range 16 {
		before := slices.Clone(a.calendar.Claims())
		a.calendar.Revise(nil)
		if slices.EqualFunc(before, a.calendar.Claims(), plan.Claim.Equal) {
			a.revised = a.looked
			break
		}
		moved = true
	}
	return moved
}
