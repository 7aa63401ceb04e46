package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/pipelines"
	"github.com/musterdl/muster/plan"
)

// How jobs start again, at another size or elsewhere, whose runs the pipelines' reactions or the sizer want
// to go on in another way.

// hands carry out what the reactions decide.
type hands struct{ *Scheduler }

var _ pipelines.Hands = hands{}

// Waits reports whether a job waits for a start.
func (h hands) Waits(job plan.JobID) bool { return h.lines.ClassOf(job) != nil || h.lines.InLine(job) }

// Again ends a run and starts its job as is wished, in a start that waits for the end, with what else is
// to be kept out of it held. Where there is no room the run goes on.
func (h hands) Again(d *plan.Draft, run plan.RunID, w *allocate.Wish, holds []plan.Hold) bool {
	mark, job := d.Mark(), w.Job
	h.claims.Discharge(job)
	d.Stop(run, w.Reason, d.Job(job).Checkpoint.Load)
	d.Hold(holds)
	fits := h.room.Start(d, w, w.Workers, plan.PlanTerms{})
	if d.Unhold(); !fits {
		d.Rollback(mark)
		h.claims.Charge(d.View, job)
		return false
	}
	h.claims.Charge(d.View, job)
	h.files.Drop(d.View, job)
	h.files.FileRunning(d.View, job)
	h.evicted(d)
	h.files.ReopenRoomy(d.View) // what it gave up may be what others wait for
	return true
}

// GoOn starts a job again that has lost its run, where there is room that is nobody else's, or in the processes
// that are left of its run.
func (h hands) GoOn(d *plan.Draft, w *allocate.Wish, keeps plan.PlanTerms, holds []plan.Hold) bool {
	it := item{Job: w.Job}
	if h.round == nil {
		it.Key, _ = h.parts.Order.Key(d.View, w.Job)
	}
	d.Hold(holds)
	fits := h.room.Start(d, w, w.Workers, keeps)
	if d.Unhold(); fits {
		h.settled(d, it, w.Workers, w.Workers, plan.None)
	}
	return fits
}
