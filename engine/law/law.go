// Package law says when a run may be stopped so that another starts, whoever decides: the rank of an
// order, the round of a joint decider, a guarantee or a priority. Nobody is stopped for nothing:
//
//   - It pays. A rank that weighs (schedule.Weigher) stops others where more is expected to be completed with the room
//     than without, their losses counted in; see Pays.
//   - What was started goes on until it has earned back what its start cost everybody; see Earned.
//   - It ends. Who displaced whom is remembered, and does not go round; see Loops.
//
// What is ended in vain in one decision, plan.Judge finds; who loses least, package victims.
package law

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/victims"
)

// AtLeast is how long a run computes in any case before another is put in its place: nothing starts and
// stops in one instant.
const AtLeast = unit.Microsecond

// Earned is when a run has computed for what its start cost everybody, so that it may go for another:
// for its own loading, and for what those lost who were stopped for it. One that saves by itself
// alone has earned nothing before it has saved. What was promised stands until it begins: it is Never
// for a run that neither computes nor is suspended.
func Earned(v plan.View, run plan.RunID) unit.Time { return earned(v, run, 0) }

// EarnedAgain is Earned under ranks that come and go: each time that the job was displaced before doubles
// what it computes for, so that ranks that turn for ever displace it no more often than the logarithm of its time.
func EarnedAgain(v plan.View, run plan.RunID) unit.Time {
	return earned(v, run, v.Job(v.Run(run).Job).Preemptions)
}

// doublings limits how often the time is doubled: twenty times, a factor of a million.
const doublings = 20

func earned(v plan.View, run plan.RunID, before int32) unit.Time {
	r := v.Run(run)
	if !r.Status.Steady() {
		return unit.Never
	}
	j := v.Job(r.Job)
	wait := max(AtLeast, j.Checkpoint.Load)
	if j.Reason.Code == plan.TookRoomOf {
		wait += j.Reason.Lost(v.Shape(r.Job).Milli(r.Workers))
	}
	if !j.Checkpoint.OnRequest {
		wait = max(wait, j.Checkpoint.Every)
	}
	times := unit.Duration(1) << min(before, doublings)
	return r.Began.Add(min(wait, unit.Forever/times)*times + r.Paused)
}

// GoesFrom is from when a run may be ended since a decider wishes so: when it has earned back its start. One that cannot
// save goes on to its end.
func GoesFrom(v plan.View, run plan.RunID) unit.Time {
	if !v.Job(v.Run(run).Job).Checkpoint.Saves() {
		return unit.Never
	}
	return Earned(v, run)
}

// ChangesFrom is from when it may go on at another size or elsewhere: then, or at once where something has changed.
func ChangesFrom(v plan.View, run plan.RunID) unit.Time {
	at := GoesFrom(v, run)
	if at != unit.Never && Changed(v, run) {
		return v.Now()
	}
	return at
}

// News reports whether a job came after a run had begun to compute, or to rest: a fact that is new, for which that may go
// before it has earned back its start.
func News(v plan.View, job plan.JobID, run plan.RunID) bool {
	r := v.Run(run)
	return r.Status != plan.Promised && r.Since < v.Now() && v.Job(job).Submit > r.Since && v.Job(job).Attempt == 0
}

// Changed reports whether a job has come or a run has ended by itself since the start of a run was decided: a fact that is
// new, for which that may go on at another size or elsewhere before it has earned back its start.
func Changed(v plan.View, run plan.RunID) bool {
	since := v.Job(v.Run(run).Job).Since
	return plan.EndedSince(v, since) || v.Job(plan.JobID(v.Jobs()-1)).Submit > since
}

// Loser is a run that would be stopped: what a completion of its job costs in seconds of its running
// time while it goes on, how long it has run, and what running time the stop costs it.
type Loser struct {
	Job       plan.JobID
	Cost, Ran float64
	Stop      unit.Duration
}

// Lose is what the stop of a run means to its job.
func Lose(v plan.View, of schedule.Weigher, run plan.RunID) Loser {
	lost, restart, _ := victims.Price(v, run)
	job := v.Run(run).Job
	return Loser{job, of.Cost(v, job), of.Ran(v, job), lost + restart}
}

// Pays reports whether more completions are expected per second of a job that starts, and of those that fill what it
// leaves of the room, than of those who are stopped for it. These make up for the stop as well, within the time that a
// completion of the job takes. Two jobs of one kind are taken to last equally long: the one that has run longer has less
// left, and a later one does not stop it.
func Pays(v plan.View, of schedule.Weigher, starts plan.JobID, fill []plan.JobID, stopped []Loser) bool {
	cost, ran := of.Cost(v, starts), of.Ran(v, starts)
	loss, alike, behind := 0., 0., cost
	for _, x := range stopped {
		loss += 1 / x.Cost * (1 + x.Stop.Seconds()/cost)
		if a := of.Alike(v, starts, x.Job); a > 0 {
			alike, behind = max(alike, a), max(behind, x.Cost+x.Ran-ran)
		}
	}
	gain := (1-alike)/cost + alike/behind
	for _, job := range fill {
		gain += 1 / of.Cost(v, job)
	}
	return gain > loss
}
