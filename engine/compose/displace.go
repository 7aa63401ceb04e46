package compose

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/victims"
)

// displace takes room for a job from running jobs ranked below it: those that the victims
// part chooses, or, where the composition names none, the lowest first, and leaves those
// alone that need not go after all.
func (s *Scheduler) displace(d *plan.Draft, it item, w *allocate.Wish) bool {
	switch j := d.Job(it.Job); {
	case j.Preemptions > 0 && j.Leaving != plan.None:
		return false // who was stopped for another stops nobody before his run has ended, since he cannot start before
	case j.Preemptions > 0 && j.Since == d.Now():
		s.roomRetry = min(s.roomRetry, d.Now().Add(law.AtLeast))
		return false // nor in that instant
	}
	if s.parts.Victims != nil {
		return s.displaceChosen(d, it, w)
	}
	if low, found := s.worst(d.View); !found || !it.Before(&low) {
		return false // nobody ranks below it
	}
	mark := d.Mark()
	left, enough := s.endLowest(d, it, w)
	if !enough {
		s.undo(d, mark, s.claims.chosen)
		return false
	}
	if !s.letStay(d, w, mark, left) {
		return false
	}
	if !s.pays(d, w.Job) {
		s.undo(d, mark, s.claims.gave)
		return false
	}
	s.gaveWay(d, w.Job)
	return true
}

// endLowest ends runs ranked below a job, the lowest first, until it has started in their room. It returns
// how much of that is left over, and whether it was enough.
func (s *Scheduler) endLowest(d *plan.Draft, it item, w *allocate.Wish) (left int64, enough bool) {
	y := &s.claims.yielding
	y.candidates, y.grounds, y.chosen, y.held, y.loses = y.candidates[:0], y.grounds[:0], y.chosen[:0], y.held[:0], y.loses[:0]
	shape := d.Shape(it.Job)
	// The idle part of a victim's device counts too, so this is the most there can be;
	// whether the job fits in it only the placer knows.
	need, free := shape.Milli(w.Workers), d.Room().FreeMilli(shape.Models)
	most, lost := free, int64(0) // most is with all that may end, before any of them has ended
	end := func(low item) {
		milli, may := s.mayDisplace(d.View, it.Job, low.Job, shape)
		if !may {
			return // its queue keeps it now that others of it have ended
		}
		i := len(y.chosen)
		y.chosen, y.held = append(y.chosen, i), append(y.held, milli)
		_, _, price := victims.Price(d.View, d.Job(low.Job).Run)
		y.candidates = append(y.candidates, victims.Candidate{Job: low.Job, Run: d.Job(low.Job).Run, Price: price})
		y.weighLoss(d.View, s.able.weigher, d.Job(low.Job).Run)
		y.grounds = append(y.grounds, plan.MadeWayFor)
		s.endFor(d, it.Job, i)
		free, lost = free+milli, min(math.MaxInt64-price, lost)+price
		enough = free >= need && s.takesRoom(d, w, w.Workers, plan.Reason{Code: plan.TookRoomOf, A: int64(len(y.chosen)), B: lost})
	}
	y.lows = y.lows[:0]
	s.eachBelow(d.View, it, func(low item) bool {
		if milli, may := s.mayDisplace(d.View, it.Job, low.Job, shape); may {
			most += milli
			y.lows = append(y.lows, low)
		}
		if most < need {
			return true // to end them would be in vain
		}
		for i := 0; i < len(y.lows) && !enough; i++ {
			end(y.lows[i])
		}
		y.lows = y.lows[:0]
		return !enough
	})
	return free - need, enough
}

// letStay has those of the chosen go on after all whose end since the mark the start does not need, as so much
// room is left over. It reports whether there is such a start.
func (s *Scheduler) letStay(d *plan.Draft, w *allocate.Wish, mark plan.Mark, left int64) bool {
	y := &s.claims.yielding
	if y.spare(left); len(y.fewer) == len(y.chosen) {
		return s.onlyNeeded(d, w, w.Workers, mark, y.chosen, nil) // of the start that was tried last
	}
	s.undo(d, mark, y.chosen)
	return s.giveWay(d, w, w.Workers, y.fewer) || s.giveWay(d, w, w.Workers, y.chosen)
}

// pays reports whether it pays that those end who gave way to a job, as far as the order knows what
// completions cost.
func (s *Scheduler) pays(d *plan.Draft, job plan.JobID) bool {
	y := &s.claims.yielding
	if len(y.loses) == 0 {
		return true // it is no matter of rank, or nobody knows
	}
	y.losers = y.losers[:0]
	left := -d.Shape(job).Milli(d.Run(d.Job(job).Run).Workers)
	for _, i := range y.gave {
		y.losers = append(y.losers, y.loses[i])
		left += d.Shape(y.candidates[i].Job).Milli(d.Run(y.candidates[i].Run).Workers)
	}
	return law.Pays(d.View, s.able.weigher, job, s.fill(d.View, job, left), y.losers)
}

// fill are waiting jobs that would have room together in so much of it, beside one that is tried: the
// best of each class first.
func (s *Scheduler) fill(v plan.View, beside plan.JobID, milli int64) []plan.JobID {
	y := &s.claims.yielding
	y.fills = y.fills[:0]
	for _, c := range s.lines.Classes() {
		each := v.ShapeOf(c.Shape).Milli(v.ShapeOf(c.Shape).Gang)
		for k := 0; k < len(c.Items()) && each > 0 && each <= milli; k++ {
			if job := c.Items()[k].Job; job != beside {
				y.fills = append(y.fills, job)
				milli -= each
			}
		}
	}
	return y.fills
}

// eachBelow calls f with the running jobs ranked below one, the lowest first, until it
// returns false.
func (s *Scheduler) eachBelow(v plan.View, it item, f func(low item) bool) {
	s.claims.below = s.claims.below[:0]
	for on := true; on; {
		low, found := s.worst(v)
		if !found || !it.Before(&low) {
			break
		}
		s.lines.Unrank(low.Job)
		s.claims.below = append(s.claims.below, low)
		on = f(low)
	}
	for _, low := range s.claims.below {
		s.lines.Rank(low)
	}
}

// spare leaves those of the chosen out who need not go when so much is left over, the best
// ranked first; they are listed the lowest first.
func (y *yielding) spare(left int64) {
	y.fewer = append(y.fewer[:0], y.chosen...)
	for k := len(y.chosen) - 1; k >= 0; k-- {
		if y.held[k] <= left {
			left -= y.held[k]
			y.fewer = slices.Delete(y.fewer, k, k+1)
		}
	}
}

// weighLoss adds what the stop of the next candidate means, where the order knows what completions cost.
func (y *yielding) weighLoss(v plan.View, of schedule.Weigher, run plan.RunID) {
	if of != nil {
		y.loses = append(y.loses, law.Lose(v, of, run))
	}
}

// displaceChosen lets the victims part choose among all that rank below a job.
func (s *Scheduler) displaceChosen(d *plan.Draft, it item, w *allocate.Wish) bool {
	shape := d.Shape(it.Job)
	s.claims.candidates, s.claims.grounds, s.claims.loses = s.claims.candidates[:0], s.claims.grounds[:0], s.claims.loses[:0]
	s.eachBelow(d.View, it, func(low item) bool {
		if _, may := s.mayDisplace(d.View, it.Job, low.Job, shape); may {
			run := d.Job(low.Job).Run
			_, _, price := victims.Price(d.View, run)
			s.claims.candidates = append(s.claims.candidates, victims.Candidate{Job: low.Job, Run: run, Price: price, Key: low.Key})
			s.claims.grounds = append(s.claims.grounds, plan.MadeWayFor)
		}
		return true
	})
	slices.SortFunc(s.claims.candidates, func(a, b victims.Candidate) int { return int(a.Job - b.Job) })
	for i := range s.claims.candidates {
		s.claims.weighLoss(d.View, s.able.weigher, s.claims.candidates[i].Run)
	}
	return s.takeFrom(d, w, w.Workers)
}

// worst returns the running job ranked last, with its rank of this moment: ranks of
// running jobs may have improved since they were filed.
func (s *Scheduler) worst(v plan.View) (item, bool) {
	for top, ranked := s.lines.Lowest(); ranked; top, ranked = s.lines.Lowest() {
		key, _ := s.parts.Order.Key(v, top.Job)
		if key == top.Key {
			return top, true
		}
		s.lines.Rerank(item{Key: key, Job: top.Job})
	}
	return item{}, false
}

// circleTime is how long a run goes on before rank displaces it, where priority takes room
// too: ranks and priorities may go in a circle, and then each of its runs gets on by this.
const circleTime = unit.Minute

// ripe is when rank may displace a run for a job, or for any that is there: when it has earned back what
// its start cost, unless the job came since, and not before the order's minimum run and the time for which
// the operator protects runs. One that cannot save at all it does not displace. Never is not for now.
func (s *Scheduler) ripe(v plan.View, id, by plan.JobID) unit.Time {
	j, wait := v.Job(id), max(s.rules.MinimumRun, s.claims.FromRank())
	if s.claims.PriorityTakes(id) {
		wait = max(wait, circleTime) // who took room by priority may rank behind whom that one displaced
	}
	if !j.Checkpoint.OnRequest {
		if j.Checkpoint.Every == 0 {
			return unit.Never
		}
		wait = max(wait, j.Checkpoint.Every)
	}
	r, at := v.Run(j.Run), law.EarnedAgain(v, j.Run)
	if s.turns() {
		at = law.Earned(v, j.Run)
	}
	if by != plan.None && law.News(v, by, j.Run) {
		at = v.Now()
	}
	if wait > 0 && r.Status != plan.Running && r.Status != plan.Suspended {
		return unit.Never
	}
	if wait > 0 {
		at = max(at, r.Began.Add(wait))
	}
	return at
}

// hasBegun reports whether a run has computed. Before that neither rank nor a round takes its place from it:
// for some others were stopped, and would have been for nothing.
func hasBegun(status plan.RunStatus) bool {
	return status == plan.Running || status == plan.Suspended || status == plan.Resuming
}

// mayDisplace reports whether a run may be displaced for a job that ranks before it, and
// how much room it would leave. What other queues are guaranteed or deserve, and what runs of
// theirs are protected, rank does not take.
func (s *Scheduler) mayDisplace(v plan.View, job, id plan.JobID, shape *plan.Shape) (milli int64, ok bool) {
	run := v.Job(id).Run
	if run == plan.None || s.stays(id) {
		return 0, false // a guest that gave way a moment ago
	}
	if !hasBegun(v.Run(run).Status) {
		return 0, false // what was promised stands until it begins
	}
	if at := s.ripe(v, id, job); at > v.Now() {
		s.roomRetry = min(s.roomRetry, at)
		return 0, false
	}
	if !s.turns() && s.claims.loops.Repeats(job, id, v.Now()) {
		s.roomRetry = min(s.roomRetry, s.claims.loops.Forgets(v.Now()))
		return 0, false
	}
	if s.claims.Outranks(v, id, job) {
		return 0, false // it would take its room back at once, and so on
	}
	j := v.Job(job)
	leaf, theirs := s.claims.LeafOf(v, &j), s.claims.ChargedTo(id)
	if leaf != theirs && (s.claims.Keeps(v, id) || !s.claims.Spares(id, leaf)) {
		if at := s.claims.ProtectedUntil(v, id); at > v.Now() {
			s.roomRetry = min(s.roomRetry, at)
		}
		return 0, false
	}
	milli = leaves(v, run, shape)
	return milli, milli > 0
}

// leaves is how much room a run would leave to a shape.
func leaves(v plan.View, run plan.RunID, shape *plan.Shape) (milli int64) {
	v.GrantsOf(run, func(g plan.Grant) {
		if v.Allows(shape, g.Node) && v.Node(g.Node).Status == plan.Up {
			milli += int64(g.Reserve)
		}
	})
	return milli
}

// evicted queues the guests that have had to give way to what was started since it was
// last asked.
func (s *Scheduler) evicted(d *plan.Draft) {
	changes := d.Changes()
	for s.making.scanned = min(s.making.scanned, len(changes)); s.making.scanned < len(changes); s.making.scanned++ {
		c := &changes[s.making.scanned]
		if c.Verb != plan.Stop || d.Job(c.Job).Phase != plan.Waiting {
			continue
		}
		if in := s.lines.ClassOf(c.Job); s.lines.Runs(c.Job) || in != nil && in.Guest {
			s.drop(d.View, c.Job)
			s.file(d.View, c.Job)
		}
	}
}
