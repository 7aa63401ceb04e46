package compose

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// How a round keeps the law, package law, where no queue has a word and its runs are ended at once:
// whoever is ended is remembered with what it had earned, and when all wishes are carried out it is
// known who started in its room. What the law forbids is taken back, see untilLawful.

// ending is a run that a round has ended, as it was before.
type ending struct {
	job, by plan.JobID // by is the first who starts in its room, None for nobody
	stop    int64      // the change
	since   unit.Time  // it was started
	earned  unit.Time
	price   int64
	leased  bool // a lease begins in its room
}

// ending is what a run would be remembered by if it were ended now.
func (r *round) ending(v plan.View, id plan.RunID) ending {
	run := v.Run(id)
	_, _, price := victims.Price(v, id)
	return ending{job: run.Job, by: plan.None, since: run.Since, earned: r.endsFrom(v, id), price: price}
}

// owes reports whether a run was ended before it had earned back its start, and not for a lease.
func (e *ending) owes(now unit.Time) bool { return !e.leased && e.earned > now }

// endsFrom is from when on a round may end a run: when it has earned back its start and had its turn. One that
// cannot save goes on to its end.
func (r *round) endsFrom(v plan.View, id plan.RunID) unit.Time {
	run := v.Run(id)
	if c := v.Job(run.Job).Checkpoint; !c.OnRequest && c.Every == 0 {
		return unit.Never
	}
	return max(law.Earned(v, id), run.Began.Add(r.turn))
}

// tookRoom is what a job whose start as wished waits for these changes has taken room of: it has to earn back
// what they lose whom the round has ended. It has no code where those are none, and for a guest.
func (r *round) tookRoom(w *allocate.Wish, after []int64) (why plan.Reason) {
	for i := range r.ended {
		if e := &r.ended[i]; e.job != w.Job && slices.Contains(after, e.stop) && !guest(w) {
			if e.by == plan.None {
				e.by = w.Job
			}
			if w.Reason.Code == plan.LeaseBegins { // it was promised this moment, which nobody's gain outweighs
				e.leased = true
				continue
			}
			why = plan.Reason{Code: plan.TookRoomOf, A: why.A + 1, B: min(math.MaxInt64-e.price, why.B) + e.price}
		}
	}
	return why
}

// unlawful lists those whom a joint decider has ended against the law, and who therefore stay.
func (r *round) unlawful(d *plan.Draft, changes []plan.Change, loops *law.Loops) (stay []plan.JobID) {
	for i := range r.ended {
		e := &r.ended[i]
		if d.RunOf(e.job) == plan.None && e.owes(d.Now()) && !r.forNews(d, e) { // else it goes on at another size, or elsewhere
			stay = append(stay, e.job)
			r.again = min(r.again, e.earned)
		}
	}
	r.eachUnnamed(d, changes, func(by, victim plan.JobID) {
		if loops.Repeats(by, victim, d.Now()) {
			stay = append(stay, victim)
			r.again = min(r.again, loops.Forgets(d.Now()))
		}
	})
	return stay
}

// forNews reports whether a run that can earn back its start was ended for a job that came after that, which nobody could know.
func (r *round) forNews(d *plan.Draft, e *ending) bool {
	if e.by == plan.None || r.turn > 0 || e.earned == unit.Never {
		return false
	}
	by := d.Job(e.by)
	return e.since < d.Now() && by.Submit > e.since && by.Attempt == 1
}

// remember notes who displaced whom in a lawful decision of a joint decider, beside whom gaveWay has noted.
func (r *round) remember(d *plan.Draft, changes []plan.Change, loops *law.Loops) {
	r.eachUnnamed(d, changes, func(by, victim plan.JobID) { loops.Note(by, victim, d.Now()) })
}

// eachUnnamed calls f with every job that starts in room which another has left that is not said to have
// made way for it: a round has ended it, or has for a third. Where jobs take turns nobody is remembered.
func (r *round) eachUnnamed(d *plan.Draft, changes []plan.Change, f func(by, victim plan.JobID)) {
	if r.turn > 0 {
		return
	}
	for i := range changes {
		for _, after := range changes[i].After {
			k := slices.IndexFunc(changes, func(c plan.Change) bool { return c.ID == after })
			if k < 0 || changes[i].Verb != plan.Start || changes[k].Verb != plan.Stop {
				continue
			}
			by, x := changes[i].Job, &changes[k]
			at := slices.IndexFunc(r.ended, func(e ending) bool { return e.stop == after })
			if at >= 0 && r.ended[at].leased {
				continue
			}
			if x.Job != by && d.RunOf(x.Job) == plan.None && (at >= 0 || plan.JobID(x.Reason.A) != by) {
				f(by, x.Job)
			}
		}
	}
}
