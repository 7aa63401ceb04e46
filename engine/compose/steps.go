package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// What a job goes through between its place and its start, the same for a composed
// scheduler and for one that decides for all jobs at once.

// admit passes a job that never ran through step 1, and a new one through the gate.
func (p *Parts) admit(d *plan.Draft, id plan.JobID, j *plan.Job) bool {
	if j.Admitted {
		return true // what was believed at the start stands, also after a restart
	}
	d.Estimate(id, p.Estimator.Estimate(d.View, id).Mean)
	if p.Gate != nil {
		if ok, why := p.Gate.Admit(d.View, id); !ok {
			return !d.Refuse(id, why)
		}
	}
	return true
}

// ratedCandidates is how many places a rater is given to choose from.
const ratedCandidates = 8

// rate is the candidate that the rater likes best; the placer's own first without one.
func (p *Parts) rate(v plan.View, job plan.JobID, n int32, shape *plan.Shape, found []allocate.Candidate) int {
	if p.Rater == nil || len(found) < 2 {
		return 0
	}
	return p.Rater.Rate(v, allocate.Need{Job: job, Attempt: v.Job(job).Attempt, Workers: n, Shape: shape}, found)
}

// terms asks steps 4 and 5 for their parts of the terms of a run, and who streams in which
// groups its layers come; of its share step 2 has said its own, or nothing.
func (p *Parts) terms(d *plan.Draft, job plan.JobID, on *allocate.Candidate) (t plan.Terms, planned, null unit.Duration) {
	t = plan.DefaultTerms().WithShare(on.Share)
	var pl plan.Pipeline
	var made bool
	if p.Planner != nil && d.ProfileOf(job).Stages > 0 {
		if pl, null, made = p.Planner.Plan(d.View, job, on.Slots); made {
			planned = pl.Iteration
		}
	}
	if s := spread(d.View, job, on.Slots); s.Name != "" {
		pl, made = plan.Pipeline{Schedule: s.Name, Iteration: s.Step, JSON: []byte(s.Shape), Spare: s.Spare}, true
		planned = s.Step
	}
	if s, ok := strategy.Can[allocate.Streamer](p.Switcher); ok {
		pl.Groups, made = s.Groups(d.View, job), true
	}
	if made {
		t.Plan.ID = d.PlanID(pl)
	}
	t.Traffic = p.Flow.Traffic(d.View, job)
	return t, planned, null
}

// spread is the plan that the job's menu has for its slots, where a planner wrote the menu: the
// planner was asked when the job was submitted, so that no cycle waits for it.
func spread(v plan.View, job plan.JobID, on []plan.Slot) workload.Spread {
	menu := v.Menu(job)
	if len(menu) == 0 || len(on) == 0 {
		return workload.Spread{}
	}
	n, several := int32(0), false
	for i := range on {
		n, several = n+on[i].Workers, several || on[i].Node != on[0].Node
	}
	return menu.Spread(v.Node(on[0].Node).Model, n, several)
}

// begin cuts the devices that a candidate wants cut, gives those beside it the terms that
// it says, and starts the job on it.
func (p *Parts) begin(d *plan.Draft, job plan.JobID, c *allocate.Candidate, terms plan.Terms, reason plan.Reason) (plan.RunID, plan.Reason) {
	mark := d.Mark()
	for _, cut := range c.Cut {
		if !d.Reshape(cut.Device, cut.Geometry, plan.Reason{Code: plan.Partitioned, A: int64(cut.Geometry)}) {
			d.Rollback(mark)
			return plan.None, plan.Reason{Code: plan.NoRoom}
		}
	}
	for _, b := range c.Beside {
		if !d.Regrant(b.Run, d.Run(b.Run).Terms.WithShare(&b.Share), plan.Reason{Code: plan.Packed, A: int64(job)}) {
			d.Rollback(mark)
			return plan.None, plan.Reason{Code: plan.NoRoom}
		}
	}
	run, why := d.Start(job, c.Slots, terms, reason)
	if why.Code != plan.NoReason {
		d.Rollback(mark)
	}
	return run, why
}

// shapeTraffic gives runs other terms on the network after their company has changed: one
// started or ended.
func (s *Scheduler) shapeTraffic(d *plan.Draft, why schedule.Trigger) {
	if s.able.shaper == nil || len(why.Jobs) == 0 && len(d.Changes()) == 0 {
		return
	}
	var runs []plan.RunID
	for id := range plan.RunID(d.RunSlots()) {
		if is := d.Run(id).Status; is == plan.Running || is == plan.Starting {
			runs = append(runs, id)
		}
	}
	for _, set := range s.able.shaper.Shape(d.View, runs, []flow.Setting(nil)) {
		d.Regrant(set.Run, d.Run(set.Run).Terms.WithTraffic(set.Traffic), plan.Reason{Code: plan.Interleaved, A: int64(set.Traffic.Shift)})
	}
}
