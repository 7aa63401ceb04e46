package stand

import (
	"fmt"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

func init() {
	register("hydro", "trials of ResNet-18 in tuning groups (trials, groups) on devices of 24 GiB (devices), fused at the artefact's prices; pipeline: beside a job of 4 stages", trials)
}

// Hydro's table for ResNet-18 on a 24 GB device: ten unscaled trials side by side take
// 39.7 s, a hundred scaled and fused ones 38.3 s. One alone is taken to be a tenth of
// the ten, as if the device were fully used by any of them, and a single scaled trial to
// gain nothing; both are the worst case for fusing.
const (
	hydroAlone = 39.7 / 10
	hydroMore  = (38.3 - hydroAlone) / 99 / hydroAlone // of a trial's time, for every other one
	// Of the table's 11.6 GB for a hundred, less a context of 600 MiB: what each adds. A
	// trial declares that, since the books know of no memory that is had once.
	hydroEach = 110
	// How many units of the table's work a trial is.
	hydroUnits = 100
)

// trials are submitted together. With pipeline=1 a job of 4 stages and 8 microbatches has
// four devices from the beginning, and is busy as 1F1B leaves it.
func trials(_ Data, o *Options, _ uint64) (*Stand, error) {
	n, groups, devices, pipeline := o.Int("trials", 100), o.Int("groups", 1), o.Int("devices", 8), o.Int("pipeline", 0) > 0
	var all []item
	if pipeline {
		all = append(all, item{workload.Job{Resources: workload.Resources{Gang: 4, Devices: 1, Share: unit.Whole, Memory: 12 << 10},
			Traits: workload.Traits{Pipeline: workload.Pipeline{Stages: 4, Microbatches: 8}, Phase: workload.Phase{Compute: 480 * unit.Millisecond, Communicate: 180 * unit.Millisecond}}},
			workload.Truth{Duration: 2 * unit.Hour, Busy: 8. / 11}})
	}
	for i := range n {
		all = append(all, item{workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole, Memory: hydroEach},
			Traits: workload.Traits{Base: "resnet18", Group: fmt.Sprint("group", i%groups)}, Submit: 1},
			workload.Truth{Duration: unit.Seconds(hydroAlone * hydroUnits), Merge: hydroMore}})
	}
	h := &hydroRun{}
	return &Stand{Cluster: cluster.Uniform("tuning", 1, devices, cluster.Model{Name: "gpu", Memory: 24 << 10, Speed: 1}, 8),
		Jobs: list(all), Step: h.step, Figures: h.figures}, nil
}

// hydroRun is what is seen of one history.
type hydroRun struct {
	at           unit.Time
	rate, guests float64 // of trials beside the pipeline since the last step: their rates, how many
	did, beside  float64 // s
}

func (h *hydroRun) step(at unit.Time, _ []plan.Change, v plan.View) {
	span := at.Sub(h.at).Seconds()
	h.did, h.beside, h.at = h.did+h.rate*span, h.beside+h.guests*span, at
	h.rate, h.guests = 0, 0
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		if host := r.Terms.Share.Guest; r.Status == plan.Running && host != plan.None && v.ProfileOf(host).Stages > 1 && v.Job(host).Phase == plan.Active {
			h.rate, h.guests = h.rate+float64(r.RateMicro)/plan.FullRate, h.guests+1
		}
	}
}

func (h *hydroRun) figures(o *Finished) map[string]float64 {
	out := map[string]float64{"bubble_used": h.did / max(1, h.beside) / (3. / 11), "beside_h": h.beside / 3600}
	if first := &o.Jobs[0]; first.Asked.Pipeline.Stages > 1 {
		out["pipeline_slowdown"] = first.Run.Seconds()/first.Truth.Duration.Seconds() - 1
	}
	return out
}
