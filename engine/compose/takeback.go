package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// takeBack makes room for a job from runs that have a weaker claim on it: those that
// hold what the job's queue is guaranteed and others have borrowed, and those of lower
// priority where the tree of queues lets priority preempt. Nobody is stopped unless
// the job starts in the room; elastic runs go on at once with fewer workers where
// that leaves room enough.
func (s *Scheduler) takeBack(d *plan.Draft, w *allocate.Wish, n int32) bool {
	s.weaker(d.View, w.Job, d.Shape(w.Job).Milli(n))
	return s.takeFrom(d, w, n)
}

// takeFrom makes room for a job from the candidates that the victims part chooses.
func (s *Scheduler) takeFrom(d *plan.Draft, w *allocate.Wish, n int32) bool {
	shape := d.Shape(w.Job)
	if len(s.claims.candidates) == 0 || s.round != nil && !s.wouldDo(d, w, n) {
		return false
	}
	in := victims.Input{View: d.View, Need: allocate.Need{Job: w.Job, Attempt: d.Job(w.Job).Attempt, Workers: n, Shape: shape}, Candidates: s.claims.candidates}
	chosen, ok := s.claims.chooser.Choose(in, func(chosen []int) bool {
		mark := d.Mark()
		if !s.giveWay(d, w, n, chosen) {
			return false
		}
		pays := s.pays(d, w.Job)
		s.undo(d, mark, s.claims.yielding.gave)
		return pays
	})
	if !ok {
		if s.round != nil {
			s.round.failed = append(s.round.failed, s.attempt(d, w.Job, n))
		}
		return false
	}
	if !s.giveWay(d, w, n, chosen) {
		panic("compose: a placement that was made cannot be made again")
	}
	s.gaveWay(d, w.Job)
	return true
}

// wouldDo reports whether all candidates together could leave a wish room and its queue
// enough of what it may hold; a joint decider may wish for much that cannot be.
func (s *Scheduler) wouldDo(d *plan.Draft, w *allocate.Wish, n int32) bool {
	if slices.Contains(s.round.failed, s.attempt(d, w.Job, n)) {
		return false
	}
	shape := d.Shape(w.Job)
	room := d.Room().FreeMilli(shape.Models)
	for i := range s.claims.candidates {
		job := s.claims.candidates[i].Job
		d.GrantsOf(s.claims.candidates[i].Run, func(g plan.Grant) {
			if g.Device != plan.None {
				room += int64(g.Reserve)
			}
		})
		s.claims.Count(job, -1)
	}
	models, _ := d.MayTake(&s.claims.Ledger, w.Job, shape.Models, shape.Milli(n))
	for i := range s.claims.candidates {
		s.claims.Count(s.claims.candidates[i].Job, 1)
	}
	return models != 0 && room >= shape.Milli(n)
}

func (s *Scheduler) attempt(d *plan.Draft, job plan.JobID, n int32) attempt {
	j := d.Job(job)
	return attempt{s.claims.LeafOf(d.View, &j), j.Shape, j.Priority, n, len(d.Changes())}
}

// weaker lists the runs that a job may displace, by job, on which grounds, and what that costs.
func (s *Scheduler) weaker(v plan.View, job plan.JobID, milli int64) {
	s.claims.candidates, s.claims.grounds, s.claims.loses = s.claims.candidates[:0], s.claims.grounds[:0], s.claims.loses[:0]
	j := v.Job(job)
	leaf := s.claims.LeafOf(v, &j)
	consider := func(other plan.JobID) {
		run := v.RunOf(other)
		if run == plan.None || s.stays(other) {
			return
		}
		ground := s.mayGo(v, leaf, job, other, milli)
		if ground == plan.NoReason {
			return
		}
		_, _, price := victims.Price(v, run)
		c := victims.Candidate{Job: other, Run: run, Price: price}
		if s.parts.Order != nil {
			c.Key, _ = s.parts.Order.Key(v, other)
		}
		s.claims.candidates, s.claims.grounds = append(s.claims.candidates, c), append(s.claims.grounds, ground)
	}
	if s.claims.Shared() {
		for other := range s.claims.Running() {
			consider(plan.JobID(other))
		}
	} else if s.round != nil {
		for _, other := range slices.Sorted(slices.Values(s.round.yields)) {
			consider(other)
		}
	}
}

// mayGo says on which ground a run may be displaced for a job now, if it may.
func (s *Scheduler) mayGo(v plan.View, leaf int32, job, other plan.JobID, milli int64) plan.ReasonCode {
	ground := s.ground(v, leaf, job, other, milli)
	if ground == plan.NoReason {
		return ground
	}
	if !s.turns() && s.claims.loops.Repeats(job, other, v.Now()) {
		s.claims.LookAgain(s.claims.loops.Forgets(v.Now()))
		return plan.NoReason
	}
	if ground == plan.RoundPlan {
		return ground
	}
	if at := s.claims.ProtectedUntil(v, other); at > v.Now() {
		s.claims.LookAgain(at)
		return plan.NoReason
	}
	return ground
}

// ground says on which ground a job may take room from another's run: by a claim of its
// queue, or because a joint decider wishes that run away or smaller, and it is of the
// job's own queue or nobody's to keep.
func (s *Scheduler) ground(v plan.View, leaf int32, job, other plan.JobID, milli int64) plan.ReasonCode {
	code := s.claims.Ground(v, leaf, job, other, milli)
	if code == plan.NoReason && s.round != nil && job != other && slices.Contains(s.round.yields, other) && !s.claims.Outranks(v, other, job) &&
		(s.claims.ChargedTo(other) == leaf || !s.claims.Keeps(v, other) && s.claims.Spares(other, leaf)) && s.paidBack(v, other) {
		code = plan.RoundPlan
	}
	return code
}

// turns reports whether jobs take turns by the strategy's design.
func (s *Scheduler) turns() bool { return s.rules.Turns || s.round != nil && s.round.turn > 0 }

// paidBack reports whether a run has computed for long enough to be worth having been
// started, so that it may go for a wish: a minute, ten times what its stop costs, and what its start cost others.
func (s *Scheduler) paidBack(v plan.View, job plan.JobID) bool {
	r := v.Run(v.Job(job).Run)
	if r.Status != plan.Running && r.Status != plan.Suspended {
		return false
	}
	at := max(s.round.endsFrom(v, v.Job(job).Run), r.Began.Add(max(resizeEvery, leastSlice*s.price(v, job))))
	if at > v.Now() {
		s.claims.LookAgain(at)
	}
	return at <= v.Now()
}
