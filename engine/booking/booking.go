// Package booking gives jobs that do not fit a claim on room to come, and says whose claims stand, and whom they do
// not bind. The claims themselves are the agenda's.
package booking

import (
	"slices"

	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/engine/claims"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/obstacle"
)

// Parts are those of a composition by which claims are given; as in package compose.
type Parts struct {
	Order schedule.Order // nil under a joint decider
	Rules schedule.Rules // of the order
	Depth int            // how many claims there may be
}

// Books give claims, and keep them in the agenda.
type Books struct {
	parts  Parts
	agenda *agenda.Agenda
	claims *claims.Claims
	lines  *lines.Lines
}

// New returns books as the parts say.
func New(parts Parts) *Books { return &Books{parts: parts} }

// Ask has the owners asked.
func (b *Books) Ask(a *agenda.Agenda, c *claims.Claims, l *lines.Lines) {
	b.agenda, b.claims, b.lines = a, c, l
}

// Rights are what queues and ranks say of claims.
func (b *Books) Rights() agenda.Rights {
	return agenda.Rights{May: b.mayEver, First: b.first, Passes: b.passes}
}

// Open opens the agenda for a decision. Room that is not held any longer is worth a try.
func (b *Books) Open(d *plan.Draft) {
	if b.agenda.Open(agenda.At(d), func(c *plan.Claim) bool { return b.stands(d.View, c) }) {
		b.lines.ReopenAll()
	}
}

// stands reports whether a claim is of a job that waits and can start here, on devices that its queues still let it have.
func (b *Books) stands(v plan.View, claim *plan.Claim) bool {
	job := claim.Job
	if v.Job(job).Phase != plan.Waiting || obstacle.Never(v, &b.claims.Ledger, job).Code != plan.NoReason {
		return false
	}
	models := b.mayEver(v, job, v.Shape(job).Models, claim.Workers)
	return !slices.ContainsFunc(claim.Parts, func(p plan.Part) bool { return models&(1<<v.Node(p.Node).Model) == 0 })
}

// first reports whether a job goes before the claims of those that are not within a guarantee.
func (b *Books) first(v plan.View, job plan.JobID) bool { return b.claims.WithinGuarantee(v, job) }

// mayEver are the models, of a set, of which a job could have as many workers if nobody held anything.
func (b *Books) mayEver(v plan.View, job plan.JobID, models uint64, workers int32) uint64 {
	models, _ = v.MayEver(&b.claims.Ledger, job, models, v.Shape(job).Milli(workers))
	return models
}

// passes reports whether the claim of an owner is none for a job: that is within its queue's guarantee and the owner is not,
// or would displace the owner by its rank.
func (b *Books) passes(v plan.View, job, owner plan.JobID) bool {
	mine, theirs := b.first(v, job), b.first(v, owner)
	if mine || theirs || !b.parts.Rules.Preempt {
		return mine && !theirs
	}
	return b.before(v, job, owner)
}

// before reports whether a job ranks before another.
func (b *Books) before(v plan.View, job, other plan.JobID) bool {
	mine, _ := b.parts.Order.Key(v, job)
	theirs, _ := b.parts.Order.Key(v, other)
	it := lines.Item{Key: mine, Job: job}
	return it.Before(&lines.Item{Key: theirs, Job: other})
}

// PutOff revises the calendar when starts went over claims, has those tried for whom that left room, and
// returns whether there may be any.
func (b *Books) PutOff(d *plan.Draft) (moved bool) {
	if moved = b.agenda.PutOff(agenda.At(d)); moved {
		b.lines.ReopenAll()
	}
	return moved
}

// Reserve gives a job that does not fit a place in the calendar, if it is its turn,
// and reports whether that place is this moment.
func (b *Books) Reserve(d *plan.Draft, job plan.JobID, why placing.Why) bool {
	if why.Bar.Code != plan.NoReason || b.agenda.Has(job) {
		return false
	}
	rank := b.rank(d.View, job)
	if rank >= b.parts.Depth {
		return false
	}
	return b.agenda.Reserve(agenda.At(d), job, rank, b.lines.ClassOf(job).Alike()) <= d.Now()
}

// rank is where a claim of a job stands: behind all others, but that of a job that lost its run with a node
// before those of jobs that rank behind it. They got theirs while it ran, and needed none before it.
func (b *Books) rank(v plan.View, job plan.JobID) int {
	claims := b.agenda.Claims()
	rank := len(claims)
	if r := v.Job(job).Reason; b.parts.Order == nil || r.Code != plan.NodeLost && r != (plan.Reason{Code: plan.RunFailed, A: int64(plan.NodeFailure)}) {
		return rank
	}
	for rank > 0 && b.before(v, job, claims[rank-1].Job) {
		rank--
	}
	return rank
}

// ReserveForOldest gives the oldest job that waits a claim when it has waited long enough. One that its queue's limits
// hold back is passed over.
func (b *Books) ReserveForOldest(d *plan.Draft) {
	waits := func(id plan.JobID) bool {
		return (b.lines.ClassOf(id) != nil || b.lines.InLine(id)) && d.Job(id).Phase == plan.Waiting
	}
	b.agenda.ReserveForOldest(agenda.At(d), waits, func(id plan.JobID) bool {
		shape := d.Shape(id)
		models, _ := d.MayTake(&b.claims.Ledger, id, shape.Models, shape.Milli(shape.Least()))
		return models != 0
	})
}
