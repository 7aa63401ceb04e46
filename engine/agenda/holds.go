package agenda

import "github.com/musterdl/muster/plan"

// Holds is the room that is kept from a job while it is placed with so many workers: what others
// have a claim on before it would end, and what windows close. It is valid until the next call.
func (a *Agenda) Holds(at Moment, job plan.JobID, workers int32) []plan.Hold {
	k := &a.kept
	if a.calendar.Empty() {
		k.leftOut, k.holds = k.leftOut[:0], k.holds[:0]
		return k.holds
	}
	if a.looked != at.Turn {
		a.show(at)
	}
	if k.job == job && k.workers == workers && k.calendar == a.calendar.Turns() {
		return k.holds
	}
	k.job, k.workers, k.calendar = job, workers, a.calendar.Turns()
	k.leftOut = k.leftOut[:0]
	for rank, c := range a.calendar.Claims() {
		if a.rights.Passes(at.View, job, c.Job) {
			k.leftOut = append(k.leftOut, rank)
		}
	}
	until := at.Now().Add(a.sees.Length(at.View, job, workers))
	k.holds = a.calendar.HoldsWithout(k.leftOut, job, until, k.holds[:0])
	return k.holds
}

// HoldsOfWindows is what windows alone keep from a job. It is valid until the next call of
// either.
func (a *Agenda) HoldsOfWindows(at Moment, job plan.JobID, workers int32) []plan.Hold {
	if a.looked != at.Turn {
		a.show(at)
	}
	until := at.Now().Add(a.sees.Length(at.View, job, workers))
	a.kept.holds, a.kept.workers = a.calendar.HoldsOfWindows(job, until, a.kept.holds[:0]), 0
	return a.kept.holds
}
