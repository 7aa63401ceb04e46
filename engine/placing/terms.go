package placing

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// terms asks steps 4 and 5 for their parts of the terms of a run, and who streams in which
// groups its layers come; of its share step 2 has said its own, or nothing.
func (p *Placing) terms(d *plan.Draft, job plan.JobID, on *allocate.Candidate) (t plan.Terms, planned, null unit.Duration) {
	t = plan.DefaultTerms().WithShare(on.Share)
	var pl plan.Pipeline
	var made bool
	if p.parts.Planner != nil && d.ProfileOf(job).Stages > 0 {
		if pl, null, made = p.parts.Planner.Plan(d.View, job, on.Slots); made {
			planned = pl.Iteration
		}
	}
	if s := d.Menu(job).On(d.View, on.Slots); s.Name != "" {
		pl, made = plan.Pipeline{Schedule: s.Name, Iteration: s.Step, JSON: []byte(s.Shape), Spare: s.Spare}, true
		planned = s.Step
	}
	if s, ok := strategy.Can[allocate.Streamer](p.parts.Switcher); ok {
		pl.Groups, made = s.Groups(d.View, job), true
	}
	if made {
		t.Plan.ID = d.PlanID(pl)
	}
	t.Traffic = p.parts.Flow.Traffic(d.View, job)
	return t, planned, null
}

// begin starts a job on a place, on the terms that steps 2, 4 and 5 have for that, and notes why; or it leaves all
// as it was.
func (p *Placing) begin(d *plan.Draft, w *allocate.Wish, c *allocate.Candidate, keeps plan.PlanTerms) bool {
	terms, planned, null := p.terms(d, w.Job, c)
	if keeps.Keeps > 0 {
		if terms.Plan.Keeps = keeps.Keeps; d.ProfileOf(w.Job).Stages > 0 {
			terms.Plan.ID = keeps.ID // the layers stay where they are, and what was learned of them with them
		}
	}
	mark := d.Mark()
	if !starts(d, w, c, terms) {
		d.Rollback(mark)
		return false
	}
	if p.parts.Explain {
		p.note(d, w.Job, terms, planned, null)
	}
	return true
}

// starts cuts the devices that a candidate wants cut, gives those beside it the terms that it says, and starts the
// job on it; it reports whether all of that could be.
func starts(d *plan.Draft, w *allocate.Wish, c *allocate.Candidate, terms plan.Terms) bool {
	for _, cut := range c.Cut {
		if !d.Reshape(cut.Device, cut.Geometry, plan.Reason{Code: plan.Partitioned, A: int64(cut.Geometry)}) {
			return false
		}
	}
	for _, b := range c.Beside {
		if !d.Regrant(b.Run, d.Run(b.Run).Terms.WithShare(&b.Share), plan.Reason{Code: plan.Packed, A: int64(w.Job)}) {
			return false
		}
	}
	_, why := d.Start(w.Job, c.Slots, terms, w.Reason)
	return why.Code == plan.NoReason
}

// note writes the dossier's lines of steps 1, 2, 4, 5 and 6: what was chosen,
// what was rejected, and the numbers.
func (p *Placing) note(d *plan.Draft, job plan.JobID, t plan.Terms, planned, null unit.Duration) {
	j := d.Job(job)
	d.Note(plan.Profiling, int64(j.Estimate), int64(j.Declared), int64(j.Estimate), int64(j.Declared))
	won, lost := p.found[0], allocate.Candidate{}
	rejected := int64(plan.None)
	if len(p.found) > 1 {
		lost, rejected = p.found[1], int64(p.found[1].Slots[0].Node)
	}
	d.Note(plan.Allocation, int64(won.Slots[0].Node), rejected, won.Score, lost.Score)
	d.Note(plan.Pipelining, int64(t.Plan.ID), plan.None, int64(planned), int64(null))
	d.Note(plan.Flows, int64(t.Traffic.Class), 0, int64(t.Traffic.Weight), 1000)
	d.Note(plan.Execution, int64(j.Attempt), 0, int64(j.Checkpoint.Every), int64(j.Checkpoint.Load))
}

// Price is the running time that stopping a job and starting it again costs.
func (p *Placing) Price(v plan.View, id plan.JobID) unit.Duration {
	if by, ok := strategy.Can[allocate.Streamer](p.parts.Switcher); ok {
		return by.Switch(v, id, id)
	}
	c := v.Job(id).Checkpoint
	return c.Save + c.Load
}
