package compose

import (
	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/engine/filing"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/engine/rounds"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// What the owners ask of the Scheduler, each through an interface of its own.

// others are those whose room a start leaves alone.
type others struct{ *Scheduler }

var _ placing.Others = others{}

// MayTake is what the ledger says.
func (o others) MayTake(v plan.View, job plan.JobID, models uint64, milli int64) (uint64, queue.Bar) {
	return v.MayTake(&o.claims.Ledger, job, models, milli)
}

// Bounds reports whether the tree of queues has any.
func (o others) Bounds() bool { return o.claims.Bounds() }

// Holds are those of the agenda.
func (o others) Holds(d *plan.Draft, job plan.JobID, workers int32) ([]plan.Hold, bool) {
	return o.agenda.Holds(agenda.At(d), job, workers), !o.agenda.Empty()
}

// Closes is what the agenda says.
func (o others) Closes(node plan.NodeID, now, until unit.Time) bool {
	return o.agenda.Closes(node, now, until)
}

// Started tells the agenda.
func (o others) Started(d *plan.Draft, run plan.RunID) { o.agenda.Started(agenda.At(d), run) }

// cycle is what a round has done and asks, and where its jobs are filed.
type cycle struct {
	*filing.Files
	s *Scheduler
}

var _ rounds.Cycle = cycle{}

// Settled moves a job that was just promised a run from the waiting to the running.
func (c cycle) Settled(d *plan.Draft, it lines.Item, n, want int32) {
	c.s.settled(d, it, n, want, plan.None)
}

// Evicted queues the guests that have had to give way.
func (c cycle) Evicted(d *plan.Draft) { c.s.evicted(d) }

// Reserve gives a job a place in the calendar.
func (c cycle) Reserve(d *plan.Draft, job plan.JobID, why placing.Why) bool {
	return c.s.books.Reserve(d, job, why)
}

// Obstacle is what keeps a job from starting.
func (c cycle) Obstacle(d *plan.Draft, job plan.JobID, own plan.Reason) plan.Reason {
	return c.s.obstacle(d, job, plan.None, own)
}

// Explain says so.
func (c cycle) Explain(d *plan.Draft, job plan.JobID, own plan.Reason) {
	c.s.explain(d, job, plan.None, own)
}

// NextLeaf is the queue that is served next.
func (c cycle) NextLeaf() int32 { return c.s.turns.Next() }
