package compose

import (
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
	return o.agenda.Holds(moment(d), job, workers), !o.agenda.Empty()
}

// Closes is what the agenda says.
func (o others) Closes(node plan.NodeID, now, until unit.Time) bool {
	return o.agenda.Closes(node, now, until)
}

// Started tells the agenda.
func (o others) Started(d *plan.Draft, run plan.RunID) { o.agenda.Started(moment(d), run) }

// cycle is what a round has done and asks, and where the room's jobs are filed.
type cycle struct{ *Scheduler }

var _ rounds.Cycle = cycle{}

// Drop takes a job out of wherever it is filed.
func (c cycle) Drop(v plan.View, job plan.JobID) { c.drop(v, job) }

// File puts a waiting job in its class.
func (c cycle) File(v plan.View, job plan.JobID) { c.file(v, job) }

// FileRunning puts a job that has a run among the running.
func (c cycle) FileRunning(v plan.View, job plan.JobID) { c.fileRunning(v, job) }

// Smaller is the next smaller size that a job may start with, or 0.
func (c cycle) Smaller(v plan.View, job plan.JobID, n int32) int32 {
	if n = v.Shape(job).Smaller(n); n == 0 {
		return 0
	}
	if until, had := c.reactions.RepairedBy(v, job); n < had && until > v.Now() {
		return 0
	}
	return n
}

// Settled moves a job that was just promised a run from the waiting to the running.
func (c cycle) Settled(d *plan.Draft, it lines.Item, n, want int32) {
	c.settled(d, it, n, want, plan.None)
}

// Evicted queues the guests that have had to give way.
func (c cycle) Evicted(d *plan.Draft) { c.evicted(d) }

// Reserve gives a job a place in the calendar.
func (c cycle) Reserve(d *plan.Draft, job plan.JobID, why placing.Why) bool {
	return c.reserve(d, job, why)
}

// Obstacle is what keeps a job from starting.
func (c cycle) Obstacle(d *plan.Draft, job plan.JobID, own plan.Reason) plan.Reason {
	return c.obstacle(d, job, plan.None, own)
}

// Explain says so.
func (c cycle) Explain(d *plan.Draft, job plan.JobID, own plan.Reason) {
	c.explain(d, job, plan.None, own)
}

// NextLeaf is the queue that is served next.
func (c cycle) NextLeaf() int32 { return c.nextLeaf() }
