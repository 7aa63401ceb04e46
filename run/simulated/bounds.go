package simulated

import (
	"github.com/musterdl/muster/mechanism/bound"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// bounds says what no schedule of these jobs could better: each goes as fast as it ever does in
// this world. Where there is less to say than usual, a note tells why.
func (s *Simulation) bounds(v plan.View, r *report.Result) {
	for id := range s.rigid {
		s.rigid[id] = s.rigid[id].At(s.world.Fastest(v, plan.JobID(id)))
	}
	b := bound.Compute(s.rigid, bound.Room{Devices: v.Devices(), Shared: s.world.Shared()})
	r.JCTBoundSec, r.IsolatedSec = b.MeanJCT.Seconds(), b.Isolated.Seconds()
	r.SquashedSRPTSec, r.QueueingSec = b.SquashedSRPT.Seconds(), b.Queueing.Seconds()
	if b.Why != "" {
		r.Notes = append(r.Notes, b.Why)
	}
}
