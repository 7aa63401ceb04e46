package stand

import (
	"fmt"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

func init() {
	register("periodic", "jobs that compute and then send, over the same two nodes, begun together", periodic)
}

// periodic is jobs of two workers on two nodes whose links carry what one of them sends.
// An iteration computes for so many milliseconds and then sends for so many; the jobs are
// listed as 60-40,60-40. All begin at once and are long.
func periodic(_ Data, o *Options, _ uint64) (*Stand, error) {
	const link = 1000
	var all []item
	for _, text := range strings.Split(o.Text("jobs", "60-40,60-40"), ",") {
		var compute, send int64
		if n, err := fmt.Sscanf(text, "%d-%d", &compute, &send); n < 2 || compute < 1 || send < 1 {
			return nil, fmt.Errorf("jobs: %q: expected milliseconds of computing and of sending, as in 60-40: %w", text, err)
		}
		all = append(all, item{Job: workload.Job{Resources: workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole}, Traits: workload.Traits{Traffic: link,
			Phase: workload.Phase{Compute: unit.Duration(compute) * unit.Millisecond, Communicate: unit.Duration(send) * unit.Millisecond}}},
			Truth: workload.Truth{Duration: unit.Hour}})
	}
	c := cluster.Uniform("two nodes", 2, len(all), cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 2)
	for i := range c.Nodes {
		c.Nodes[i].Uplink = link
	}
	p := &periodicRun{jobs: len(all)}
	return &Stand{Cluster: c, Jobs: list(all), Step: p.step,
		Figures: func(*Finished) map[string]float64 { return map[string]float64{"iteration_ms": p.mean} }}, nil
}

// periodicRun sees how long an iteration takes, on the mean over the jobs, as long as all
// of them run.
type periodicRun struct {
	jobs int
	mean float64 // ms
}

func (p *periodicRun) step(_ unit.Time, _ []plan.Change, v plan.View) {
	running, sum := 0, 0.0
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		if r.Status != plan.Running || r.RateMicro <= 0 {
			continue
		}
		phase := v.ProfileOf(r.Job)
		running, sum = running+1, sum+float64(phase.Compute+phase.Communicate)/float64(unit.Millisecond)*plan.FullRate/float64(r.RateMicro)
	}
	if running == p.jobs {
		p.mean = sum / float64(running)
	}
}
