package stand

import (
	"fmt"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("locality", "RW-L: 160 gangs that suffer from spreading, on 8 nodes of 8 devices", locality)
}

// locality is the reference workload of gangs that suffer from being spread, whose
// communication is known, on eight nodes of eight devices in one rack.
func locality(_ Data, o *Options, seed uint64) (*Stand, error) {
	load := o.Float("load", .95)
	jobs, err := trace.Open(fmt.Sprintf("gen:rw-l?phase=known&load=%g", load), trace.Options{Devices: 64, Seed: seed})
	if err != nil {
		return nil, err
	}
	l := &localityRun{}
	return &Stand{Cluster: cluster.Uniform("gpus:8x8", 8, 8, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 8), Jobs: jobs, Prices: simulated.Prices{Restart: 30 * unit.Second},
		Step: l.step, Figures: func(f *Finished) map[string]float64 {
			return map[string]float64{"locality_wait_s": l.waited.Seconds() / float64(len(f.Jobs)), "capacity_wait_s": f.Result.AvgWaitSec - l.waited.Seconds()/float64(len(f.Jobs))}
		}}, nil
}

// localityRun adds up how long jobs wait although as many devices as they ask for are
// free: what is missing then is only that they are near each other.
type localityRun struct {
	at     unit.Time
	now    int // jobs that wait so
	waited unit.Duration
}

func (l *localityRun) step(at unit.Time, _ []plan.Change, v plan.View) {
	l.waited += unit.Duration(l.now) * at.Sub(l.at)
	l.at, l.now = at, 0
	free := int32(0)
	for id := range plan.DeviceID(v.Devices()) {
		if d := v.Device(id); !d.Status.Out() && d.Free == 1000 {
			free++
		}
	}
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase.Waits() && v.Shape(id).Gang*v.Shape(id).Devices <= free {
			l.now++
		}
	}
}
