// Package agenda says when a job that waits may have room: what claims and windows keep from
// it, what place it gets in the calendar itself, and when somebody is to look again. It holds
// the calendar of package schedule/calendar together with what a decision knows of it: up to
// which turn of the draft the calendar has seen what runs, and whether starts have gone over
// claims since. It is told what queues allow and what has started; it changes no draft.
package agenda

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// Moment is a draft as the agenda sees it: its view, and how often it has changed. At the same
// turn there is the same to see.
type Moment struct {
	plan.View
	Turn int64
}

// At is the moment in which a draft is.
func At(d *plan.Draft) Moment { return Moment{View: d.View, Turn: d.Turns()} }

// Rights are what queues and ranks say of a job, as far as its claims go by that.
type Rights struct {
	// May returns the device models, of a set, of which a job could ever have as many workers.
	May func(v plan.View, job plan.JobID, models uint64, workers int32) uint64
	// First reports whether a job is within what its queue is guaranteed. It goes before the
	// claims of those that are not: a gang that borrows has no bound on its wait but the
	// guarantees of others.
	First func(v plan.View, job plan.JobID) bool
	// Passes reports whether a job takes room that another claims: it goes first and that one does not, or it would
	// displace that one if it ran there. Room that is kept from it would stand empty for a run of a moment.
	Passes func(v plan.View, job, owner plan.JobID) bool
}

// Agenda is the calendar as a decision goes on.
type Agenda struct {
	policy   calendar.Policy
	sees     foresight
	rights   Rights
	calendar calendar.Calendar
	looked   int64 // the turn up to which the calendar has seen what runs
	revised  int64 // the turn at which every claim was as early as may be, but for what took room since
	kept     kept
	passed   bool       // a start went over claims, or stopped others, since the claims were revised
	overdue  unit.Time  // when the next run is expected to end, and else takes longer
	oldest   plan.JobID // no older one waits
	claimDue unit.Time  // when the oldest that waits will have waited long enough
}

// kept is the room that is kept from a job. While the calendar stays as it is, that does too.
type kept struct {
	holds    []plan.Hold
	leftOut  []int // ranks of claims that do not count for the job
	job      plan.JobID
	workers  int32
	calendar int64 // its turn
}

// foresight is what of calendar.Foresight the agenda goes by.
type foresight interface {
	Length(v plan.View, job plan.JobID, workers int32) unit.Duration
	Expected(v plan.View, run plan.RunID) (end unit.Time, steady bool)
	Claims(v plan.View, job plan.JobID, workers int32) bool
	Pays(v plan.View, job plan.JobID, alike int, at unit.Time) bool
}

// asEstimated is the foresight of a policy that has none: estimates are believed, and every claim
// is worth its room.
type asEstimated struct{}

// Length is as estimated.
func (asEstimated) Length(v plan.View, job plan.JobID, workers int32) unit.Duration {
	return calendar.Length(v, job, workers)
}

// Expected is as estimated.
func (asEstimated) Expected(v plan.View, run plan.RunID) (unit.Time, bool) {
	return calendar.Expected(v, run)
}

// Claims reports that everybody may have a claim.
func (asEstimated) Claims(plan.View, plan.JobID, int32) bool { return true }

// Pays reports that every claim is worth its room.
func (asEstimated) Pays(plan.View, plan.JobID, int, unit.Time) bool { return true }

// New returns an empty agenda.
func New(policy calendar.Policy, rights Rights) Agenda {
	a := Agenda{policy: policy, sees: asEstimated{}, rights: rights, overdue: unit.Never, claimDue: unit.Never,
		calendar: calendar.Calendar{Slack: policy.Slack, Repair: policy.Repair, May: rights.May}}
	if policy.Foresight != nil {
		a.sees = policy.Foresight
	}
	return a
}

// Open takes the claims and windows from the state as a decision finds it: claims that do not
// stand any more are dropped, the others revised. It returns whether the claims are others
// now than the state has, so that room is not held any longer that was.
func (a *Agenda) Open(at Moment, stands func(claim *plan.Claim) bool) (changed bool) {
	c := &a.calendar
	for len(c.Claims()) > 0 {
		c.Drop(c.Claims()[0].Job)
	}
	firm := 0 // claims within a guarantee go before others
	for _, claim := range at.Claims() {
		switch {
		case !stands(&claim):
		case a.rights.First(at.View, claim.Job):
			c.Insert(firm, claim)
			firm++
		default:
			c.Insert(len(c.Claims()), claim)
		}
	}
	c.SetWindows(at.Windows())
	a.overdue, a.passed, a.revised = unit.Never, false, plan.None
	if !c.Empty() {
		a.show(at)
		a.revise()
	}
	return !slices.EqualFunc(c.Claims(), at.Claims(), plan.Claim.Equal)
}

// Close returns the claims that the state is to keep.
func (a *Agenda) Close() []plan.Claim {
	if a.calendar.Empty() {
		a.overdue = unit.Never
	}
	return a.calendar.Claims()
}

// Wake is when the agenda wants a decision even if nothing else happens.
func (a *Agenda) Wake(now unit.Time) unit.Time {
	return min(a.claimDue, a.overdue, a.calendar.Wake(now))
}

// Empty reports whether there is neither a claim nor a window.
func (a *Agenda) Empty() bool { return a.calendar.Empty() }

// Claims are the claims in order of rank, to be read.
func (a *Agenda) Claims() []plan.Claim { return a.calendar.Claims() }

// Windows are the maintenance windows, to be read.
func (a *Agenda) Windows() []plan.Window { return a.calendar.Windows() }

// Has reports whether a job has a claim.
func (a *Agenda) Has(job plan.JobID) bool { return a.calendar.Find(job) >= 0 }

// Full reports whether no more claims are to be made by rank.
func (a *Agenda) Full() bool { return len(a.calendar.Claims()) >= a.policy.Depth }

// Closes reports whether a window closes a node before an instant. What is held is only what
// is free, and a job may begin its turn, or be a guest, where nothing is.
func (a *Agenda) Closes(node plan.NodeID, now, until unit.Time) bool {
	return slices.ContainsFunc(a.calendar.Windows(), func(w plan.Window) bool { return w.Node == node && w.From < until && now < w.To })
}

// Length is how long a run of a job is expected to take, as the policy has it.
func (a *Agenda) Length(v plan.View, job plan.JobID, workers int32) unit.Duration {
	return a.sees.Length(v, job, workers)
}

// show shows the calendar what is free and what runs.
func (a *Agenda) show(at Moment) {
	a.overdue = a.calendar.Look(at.View, func(run plan.RunID) (unit.Time, bool) { return a.sees.Expected(at.View, run) })
	a.looked = at.Turn
}

// Started tells of a run that was promised by the last change of the draft. A calendar that has
// not seen what came before it looks again when it is asked.
func (a *Agenda) Started(at Moment, run plan.RunID) {
	if a.calendar.Empty() || a.looked != at.Turn-1 {
		return
	}
	end, _ := a.sees.Expected(at.View, run)
	a.calendar.Started(run, end)
	if a.revised == a.looked {
		a.revised++ // there is only less room
	}
	a.looked, a.overdue = at.Turn, min(a.overdue, max(end, at.Now()+1))
}
