package room

import (
	"slices"

	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// Grounds say why a run may be stopped for a job, and from when on.
type Grounds struct {
	*owners
	// Loops are who displaced whom.
	Loops *law.Loops
	// Retry is when those who found no room try again.
	Retry unit.Time

	stays []plan.JobID // whose runs go on in this decision as they are
}

// Reset forgets who displaced whom.
func (g *Grounds) Reset() { g.Loops, g.Retry = law.NewLoops(law.DefaultLimits()), unit.Never }

// Stay has the runs of jobs go on in this decision as they are, and reports whether any of them might have ended before.
func (g *Grounds) Stay(jobs ...plan.JobID) (more bool) {
	for _, job := range jobs {
		if !g.Stays(job) {
			g.stays, more = append(g.stays, job), true
		}
	}
	return more
}

// Stays reports whether a job's run goes on as it is, since to end it was in vain or against the law.
func (g *Grounds) Stays(job plan.JobID) bool { return slices.Contains(g.stays, job) }

// AnyStays reports whether any does.
func (g *Grounds) AnyStays() bool { return len(g.stays) > 0 }

// circleTime is how long a run goes on before rank displaces it, where priority takes room
// too: ranks and priorities may go in a circle, and then each of its runs gets on by this.
const circleTime = unit.Minute

// Ripe is when rank may displace a run for a job, or for any that is there: when it has earned back what
// its start cost, unless the job came since, and not before the order's minimum run and the time for which
// the operator protects runs. One that cannot save at all it does not displace. Never is not for now.
func (g *Grounds) Ripe(v plan.View, id, by plan.JobID) unit.Time {
	j, wait := v.Job(id), max(g.parts.Rules.MinimumRun, g.claims.FromRank())
	if g.claims.PriorityTakes(id) {
		wait = max(wait, circleTime) // who took room by priority may rank behind whom that one displaced
	}
	if !j.Checkpoint.OnRequest {
		if j.Checkpoint.Every == 0 {
			return unit.Never
		}
		wait = max(wait, j.Checkpoint.Every)
	}
	r, at := v.Run(j.Run), law.EarnedAgain(v, j.Run)
	if g.turns() {
		at = law.Earned(v, j.Run)
	}
	if by != plan.None && law.News(v, by, j.Run) {
		at = v.Now()
	}
	if wait > 0 && !r.Status.Steady() {
		return unit.Never
	}
	if wait > 0 {
		at = max(at, r.Began.Add(wait))
	}
	return at
}

// mayDisplace reports whether a run may be displaced for a job that ranks before it, and
// how much room it would leave. What other queues are guaranteed or deserve, and what runs of
// theirs are protected, rank does not take.
func (g *Grounds) mayDisplace(v plan.View, job, id plan.JobID, shape *plan.Shape) (milli int64, ok bool) {
	run := v.Job(id).Run
	if run == plan.None || g.Stays(id) {
		return 0, false // a guest that gave way a moment ago
	}
	if !v.Run(run).Status.HasBegun() {
		return 0, false // what was promised stands until it begins
	}
	if at := g.Ripe(v, id, job); at > v.Now() {
		g.Retry = min(g.Retry, at)
		return 0, false
	}
	if !g.turns() && g.Loops.Repeats(job, id, v.Now()) {
		g.Retry = min(g.Retry, g.Loops.Forgets(v.Now()))
		return 0, false
	}
	if g.claims.Outranks(v, id, job) {
		return 0, false // it would take its room back at once, and so on
	}
	j := v.Job(job)
	leaf, theirs := g.claims.LeafOf(v, &j), g.claims.ChargedTo(id)
	if leaf != theirs && (g.claims.Keeps(v, id) || !g.claims.Spares(id, leaf)) {
		if at := g.claims.ProtectedUntil(v, id); at > v.Now() {
			g.Retry = min(g.Retry, at)
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

// weaker calls add with the runs that a job may displace, by job, on which grounds, and what that costs.
func (g *Grounds) weaker(v plan.View, job plan.JobID, milli int64, add func(c victims.Candidate, ground plan.ReasonCode)) {
	j := v.Job(job)
	leaf := g.claims.LeafOf(v, &j)
	consider := func(other plan.JobID) {
		run := v.RunOf(other)
		if run == plan.None || g.Stays(other) {
			return
		}
		ground := g.mayGo(v, leaf, job, other, milli)
		if ground == plan.NoReason {
			return
		}
		_, _, price := victims.Price(v, run)
		c := victims.Candidate{Job: other, Run: run, Price: price}
		if g.parts.Order != nil {
			c.Key, _ = g.parts.Order.Key(v, other)
		}
		add(c, ground)
	}
	if g.claims.Shared() {
		for other := range g.claims.Running() {
			consider(plan.JobID(other))
		}
	} else if g.round != nil {
		for _, other := range slices.Sorted(slices.Values(g.round.Yields())) {
			consider(other)
		}
	}
}

// patience is how long a claim waits at most for a run that has not earned back its start: runs that take each other's room
// would keep it from what it is guaranteed for ever.
const patience = unit.Hour

// mayGo says on which ground a run may be displaced for a job now, if it may.
func (g *Grounds) mayGo(v plan.View, leaf int32, job, other plan.JobID, milli int64) plan.ReasonCode {
	ground := g.ground(v, leaf, job, other, milli)
	if ground == plan.NoReason {
		return ground
	}
	if !g.turns() && g.Loops.Repeats(job, other, v.Now()) {
		g.claims.LookAgain(g.Loops.Forgets(v.Now()))
		return plan.NoReason
	}
	if ground == plan.RoundPlan {
		return ground
	}
	at, run := g.claims.ProtectedUntil(v, other), v.RunOf(other)
	if !law.News(v, job, run) {
		at = max(at, min(law.Earned(v, run), v.Job(job).Since.Add(patience)))
	}
	if at > v.Now() {
		g.claims.LookAgain(at)
		return plan.NoReason
	}
	return ground
}

// ground says on which ground a job may take room from another's run: by a claim of its
// queue, or because a joint decider wishes that run away or smaller, and it is of the
// job's own queue or nobody's to keep.
func (g *Grounds) ground(v plan.View, leaf int32, job, other plan.JobID, milli int64) plan.ReasonCode {
	code := g.claims.Ground(v, leaf, job, other, milli)
	if code == plan.NoReason && g.round != nil && job != other && slices.Contains(g.round.Yields(), other) && !g.claims.Outranks(v, other, job) &&
		(g.claims.ChargedTo(other) == leaf || !g.claims.Keeps(v, other) && g.claims.Spares(other, leaf)) && g.paidBack(v, other) {
		code = plan.RoundPlan
	}
	return code
}

// turns reports whether jobs take turns by the strategy's design.
func (g *Grounds) turns() bool { return g.parts.Rules.Turns || g.round != nil && g.round.Turn() > 0 }

// paidBack reports whether a run has computed for long enough to be worth having been started, so that it may go
// for a wish.
func (g *Grounds) paidBack(v plan.View, job plan.JobID) bool {
	at := g.round.GoesFrom(v, v.Job(job).Run)
	if !v.Run(v.Job(job).Run).Status.Steady() {
		return false
	}
	if at > v.Now() {
		g.claims.LookAgain(at)
	}
	return at <= v.Now()
}
