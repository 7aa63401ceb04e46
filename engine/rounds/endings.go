package rounds

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// ending is a run that a round has ended, as it was before.
type ending struct {
	job, by plan.JobID // by is the first who starts in its room, None for nobody
	stop    int64      // the change
	since   unit.Time  // it was started
	earned  unit.Time
	price   int64
	leased  bool // a lease begins in its room
	changed bool // see law.Changed
}

// endings are those of a decision, so that the law of package law is kept where no queue has a word and runs are
// ended at once: when all wishes are carried out it is known who started in whose room, and what the law forbids
// is taken back.
type endings struct {
	list []ending
	turn unit.Duration // how long jobs run at least that take turns by design, 0 where they do not
}

// of is what a run would be remembered by if it were ended now.
func (e *endings) of(v plan.View, id plan.RunID) ending {
	run := v.Run(id)
	_, _, price := victims.Price(v, id)
	return ending{job: run.Job, by: plan.None, since: run.Since, earned: e.endsFrom(v, id), price: price, changed: law.Changed(v, id)}
}

// owes reports whether a run was ended before it had earned back its start, and not for a lease.
func (e *ending) owes(now unit.Time) bool { return !e.leased && e.earned > now }

// endsFrom is from when a round may end a run: when the law lets it go and it had its turn.
func (e *endings) endsFrom(v plan.View, id plan.RunID) unit.Time {
	return max(law.GoesFrom(v, id), v.Run(id).Began.Add(e.turn))
}

// tookRoom is what a job whose start as wished waits for these changes has taken room of: it has to earn back
// what they lose whom the round has ended. It has no code where those are none, and for a guest.
func (e *endings) tookRoom(w *allocate.Wish, after []int64) (why plan.Reason) {
	for i := range e.list {
		x := &e.list[i]
		if x.job == w.Job || !slices.Contains(after, x.stop) || placing.Guest(w) {
			continue
		}
		if x.by == plan.None {
			x.by = w.Job
		}
		if w.Reason.Code == plan.LeaseBegins { // it was promised this moment, which nobody's gain outweighs
			x.leased = true
			continue
		}
		why = plan.Reason{Code: plan.TookRoomOf, A: why.A + 1, B: min(math.MaxInt64-x.price, why.B) + x.price}
	}
	return why
}

// unlawful lists those who were ended against the law, if only to go on at another size or elsewhere, and who therefore
// stay as they are, and when the first of them may go.
func (e *endings) unlawful(d *plan.Draft, changes []plan.Change, loops *law.Loops) (stay []plan.JobID, again unit.Time) {
	again = unit.Never
	for i := range e.list {
		x := &e.list[i]
		if goesOn := d.RunOf(x.job) != plan.None; x.owes(d.Now()) && !e.forNews(d, x) && !(goesOn && x.changed && x.earned != unit.Never) {
			stay, again = append(stay, x.job), min(again, x.earned)
		}
	}
	e.eachUnnamed(d, changes, func(by, victim plan.JobID) {
		if loops.Repeats(by, victim, d.Now()) {
			stay, again = append(stay, victim), min(again, loops.Forgets(d.Now()))
		}
	})
	return stay, again
}

// forNews reports whether a run that can earn back its start was ended for a job that came after that, which nobody could know.
func (e *endings) forNews(d *plan.Draft, x *ending) bool {
	if x.by == plan.None || e.turn > 0 || x.earned == unit.Never {
		return false
	}
	by := d.Job(x.by)
	return x.since < d.Now() && by.Submit > x.since && by.Attempt == 1
}

// remember notes who displaced whom in a lawful decision of a joint decider, beside those who gave way to a claim.
func (e *endings) remember(d *plan.Draft, changes []plan.Change, loops *law.Loops) {
	e.eachUnnamed(d, changes, func(by, victim plan.JobID) { loops.Note(by, victim, d.Now()) })
}

// eachUnnamed calls f with every job that starts in room which another has left that is not said to have
// made way for it: a round has ended it, or has for a third. Where jobs take turns nobody is remembered.
func (e *endings) eachUnnamed(d *plan.Draft, changes []plan.Change, f func(by, victim plan.JobID)) {
	if e.turn > 0 {
		return
	}
	for i := range changes {
		for _, after := range changes[i].After {
			k := slices.IndexFunc(changes, func(c plan.Change) bool { return c.ID == after })
			if k < 0 || changes[i].Verb != plan.Start || changes[k].Verb != plan.Stop {
				continue
			}
			by, stopped := changes[i].Job, &changes[k]
			at := slices.IndexFunc(e.list, func(x ending) bool { return x.stop == after })
			if at >= 0 && e.list[at].leased {
				continue
			}
			if stopped.Job != by && d.RunOf(stopped.Job) == plan.None && (at >= 0 || plan.JobID(stopped.Reason.A) != by) {
				f(by, stopped.Job)
			}
		}
	}
}
