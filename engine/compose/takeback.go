package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/model/unit"
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
		s.count(job, -1)
	}
	models, _ := d.MayTake(&s.claims.tree.Ledger, w.Job, shape.Models, shape.Milli(n))
	for i := range s.claims.candidates {
		s.count(s.claims.candidates[i].Job, 1)
	}
	return models != 0 && room >= shape.Milli(n)
}

func (s *Scheduler) attempt(d *plan.Draft, job plan.JobID, n int32) attempt {
	j := d.Job(job)
	return attempt{s.claims.tree.leaf(d.View, &j), j.Shape, j.Priority, n, len(d.Changes())}
}

// weaker lists the runs that a job may displace, by job, on which grounds, and what that costs.
func (s *Scheduler) weaker(v plan.View, job plan.JobID, milli int64) {
	s.claims.candidates, s.claims.grounds, s.claims.loses = s.claims.candidates[:0], s.claims.grounds[:0], s.claims.loses[:0]
	j := v.Job(job)
	leaf := s.claims.tree.leaf(v, &j)
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
	if s.claims.tree.Shared() {
		for other := range s.claims.running.All() {
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
		s.claims.unprotected = min(s.claims.unprotected, s.claims.loops.Forgets(v.Now()))
		return plan.NoReason
	}
	if ground == plan.RoundPlan {
		return ground
	}
	if at := s.protectedUntil(v, other); at > v.Now() {
		s.claims.unprotected = min(s.claims.unprotected, at)
		return plan.NoReason
	}
	return ground
}

// ground says on which ground a job may take room from another's run: by a claim of its
// queue, or because a joint decider wishes that run away or smaller, and it is of the
// job's own queue or nobody's to keep.
func (s *Scheduler) ground(v plan.View, leaf int32, job, other plan.JobID, milli int64) plan.ReasonCode {
	code := s.stronger(v, leaf, job, other, milli)
	if code == plan.NoReason && s.round != nil && job != other && slices.Contains(s.round.yields, other) && !s.outranks(v, other, job) &&
		(s.claims.charged[other].leaf == leaf || !s.keeps(v, other) && s.spares(other, leaf)) && s.paidBack(v, other) {
		code = plan.RoundPlan
	}
	return code
}

// outranks reports whether a run would take its room back from a job at once, by its priority.
func (s *Scheduler) outranks(v plan.View, run, job plan.JobID) bool {
	j := v.Job(job)
	return s.claims.tree.Shared() && v.Priority(run) > j.Priority && s.claims.tree.PriorityCounts(s.claims.tree.leaf(v, &j), s.claims.charged[run].leaf)
}

// turns reports whether jobs take turns by the strategy's design.
func (s *Scheduler) turns() bool { return s.rules.Turns || s.round != nil && s.round.turn }

// paidBack reports whether a run has computed for long enough to be worth having been
// started, so that it may go for a wish: a minute, ten times what its stop costs, and what its start cost others.
func (s *Scheduler) paidBack(v plan.View, job plan.JobID) bool {
	r := v.Run(v.Job(job).Run)
	if r.Status != plan.Running && r.Status != plan.Suspended {
		return false
	}
	at := max(law.Earned(v, v.Job(job).Run), r.Began.Add(max(resizeEvery, leastSlice*s.price(v, job))))
	if at > v.Now() {
		s.claims.unprotected = min(s.claims.unprotected, at)
	}
	return at <= v.Now()
}

// keeps reports whether a run is not stopped for jobs of other queues that have no claim
// to its room: since it is protected, or holds what its queue is guaranteed.
func (s *Scheduler) keeps(v plan.View, job plan.JobID) bool {
	if !s.claims.tree.Shared() {
		return false
	}
	if s.claims.tree.config.Protect > 0 && s.protectedUntil(v, job) > v.Now() {
		return true
	}
	c := s.claims.charged[job]
	return c.milli > 0 && s.claims.tree.Guaranteed(c.leaf, 1<<c.model, 0)
}

// spares reports whether the queue of a run still has what it deserves when that run ends for
// a job of a leaf.
func (s *Scheduler) spares(other plan.JobID, leaf int32) bool {
	s.claims.tree.aim()
	c := s.claims.charged[other]
	return c.milli == 0 || s.claims.tree.MayYield(c.leaf, leaf, c.model, c.milli)
}

// mayTakeBack reports whether free room and all that anybody might have to give up to
// a job of a priority are enough for the smallest size of a shape: a bound that costs
// one look at what runs for all classes of a decision.
func (s *Scheduler) mayTakeBack(v plan.View, shape *plan.Shape, priority int32) bool {
	need := shape.Milli(smallest(shape)) - v.Room().FreeMilli(shape.Models)
	return s.couldTakeBack(v, shape) && need <= sum(s.givable(v, priority), shape.Models)
}

// couldTakeBack is a wider bound that costs nothing.
func (s *Scheduler) couldTakeBack(v plan.View, shape *plan.Shape) bool {
	need := shape.Milli(smallest(shape)) - v.Room().FreeMilli(shape.Models)
	return s.claims.tree.Shared() && need <= sum(s.claims.tree.Lent(), shape.Models)
}

// sum adds up the models of a set.
func sum(of []int64, models uint64) (n int64) {
	for m, milli := range of {
		if models&(1<<m) != 0 {
			n += milli
		}
	}
	return n
}

// givable is, by model, what unprotected runs hold that are above a guarantee or of
// lower priority where that counts.
func (s *Scheduler) givable(v plan.View, priority int32) []int64 {
	if s.claims.givesOf != s.lines.Pass() {
		s.claims.givesOf, s.claims.gives = s.lines.Pass(), s.claims.gives[:0]
	}
	for i := range s.claims.gives {
		if s.claims.gives[i].priority == priority {
			return s.claims.gives[i].milli
		}
	}
	g := give{priority, make([]int64, v.Room().Models())}
	for b := range s.claims.tree.heads {
		x := &s.claims.tree.heads[b]
		if len(x.running) == 0 || !s.claims.tree.Lends(int32(b)) {
			continue
		}
		over, preempt := s.claims.tree.OverGuarantee(int32(b)), s.claims.tree.Preempts(int32(b))
		for _, id := range x.running {
			if !over && !(preempt && v.Priority(id) < priority) || v.RunOf(id) == plan.None {
				continue // none: it was stopped a moment ago
			}
			if at := s.protectedUntil(v, id); at > v.Now() {
				s.claims.unprotected = min(s.claims.unprotected, at)
				continue
			}
			c := &s.claims.charged[id]
			if c.milli > 0 {
				g.milli[c.model] += c.milli
			}
			for _, c := range s.claims.more[id] {
				g.milli[c.model] += c.milli
			}
		}
	}
	s.claims.gives = append(s.claims.gives, g)
	return g.milli
}

// give is what could be taken back for a job of a priority, by model.
type give struct {
	priority int32
	milli    []int64
}

// together is how exactly the end of a protection is kept: those that lose it within
// this time are looked at together.
const together = unit.Time(10 * unit.Second)

// protectedUntil is until when a job's run is not displaced for a guarantee or a priority.
func (s *Scheduler) protectedUntil(v plan.View, job plan.JobID) unit.Time {
	if s.rules.Preempt || s.round != nil {
		if _, run, why := v.Stands(job); why == plan.TookRoomOf {
			return protection(v, run, 0) // else runs that take each other's room would keep it from a guarantee for ever
		}
	}
	return s.claims.charged[job].protected
}

// protection is when a run has computed for its time. A promise stands, or others would have been stopped
// for nothing. Never is not for now.
func protection(v plan.View, run plan.RunID, wait unit.Duration) unit.Time {
	r := v.Run(run)
	if r.Status != plan.Running && r.Status != plan.Suspended {
		return unit.Never
	}
	wait = max(wait, law.AtLeast)
	if c := v.Job(r.Job).Checkpoint; !c.OnRequest {
		wait = max(wait, c.Every)
	}
	return (r.Began.Add(wait) + together - 1) / together * together
}

// stronger says by which claim a job may take milli of room from another's run, or
// that it may not.
func (s *Scheduler) stronger(v plan.View, leaf int32, job, other plan.JobID, milli int64) plan.ReasonCode {
	held, models := s.claims.charged[other], v.Shape(job).Models
	if held.model != plan.None && (held.milli == 0 || models&(1<<held.model) == 0) {
		return plan.NoReason // a guest, or on devices that are no use
	}
	guarantee, priority := s.claims.tree.Stronger(leaf, held.leaf, held.model, models, milli)
	if guarantee {
		return plan.Reclaimed
	}
	j, o := v.Job(job), v.Job(other)
	if !priority || j.Priority <= o.Priority {
		return plan.NoReason
	}
	if days := v.Now().Sub(o.Submit) / unit.Day; s.claims.tree.config.Disruptions > 0 && int64(o.Preemptions) >= int64(s.claims.tree.config.Disruptions)*(1+int64(days)) {
		s.claims.unprotected = min(s.claims.unprotected, o.Submit.Add((days+1)*unit.Day))
		return plan.NoReason
	}
	return plan.Outranked
}
