package compose

import (
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

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
