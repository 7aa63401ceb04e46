package stand

import (
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/report"
)

func init() {
	register("mps", "jobs (jobs) that ask for a part (share) of one device each and alone would use another (sm); with fault, one fails after a minute", clients)
}

// clients are jobs of an hour that ask for a part of a device. By itself on a whole one
// each would keep sm of it busy.
func clients(_ Data, o *Options, _ uint64) (*Stand, error) {
	sm, share, fault := o.Float("sm", .9), o.Float("share", .5), o.Int("fault", 0) > 0
	all := make([]item, o.Int("jobs", 2))
	for i := range all {
		all[i] = item{workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Milli(1000 * share), Memory: 8 << 10}, Retries: 1}, workload.Truth{Duration: unit.Hour, Busy: sm / share}}
	}
	if fault {
		all[0].FailAfter, all[0].Retries = unit.Minute, 0
	}
	return &Stand{Cluster: cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 1), Jobs: list(all),
		Figures: func(o *Finished) map[string]float64 {
			least, ended := 1., 0.
			for i := range o.Jobs {
				j := &o.Jobs[i]
				least = min(least, j.Truth.Duration.Seconds()/max(1, j.Run.Seconds()))
				if j.Outcome == report.Failed || j.Restarts > 0 {
					ended++
				}
			}
			return map[string]float64{"over_solo": least, "ended": ended}
		}}, nil
}
