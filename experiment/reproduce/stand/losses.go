package stand

import (
	"math/rand/v2"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("losses", "RW-A at a load of 1.3 on 15 nodes of 4 devices; jobs report their losses, a fifth reaches its target on the way", losses)
}

// losses is a reference workload whose jobs report progress and loss every five minutes:
// losses fall like 1/(a k + 1), to between 1/6 and 1/51, and a job's target is the loss at
// its end, or, of the early ones, somewhere between 20 % and 80 % of its work. A resumed
// job loses a minute.
func losses(_ Data, o *Options, seed uint64) (*Stand, error) {
	nodes, early, reports := o.Int("nodes", 15), o.Float("early", .2), o.Int("reports", 1) != 0
	r, err := trace.Open("gen:"+o.Text("jobs", "rw-a"), trace.Options{Load: o.Float("load", 1.3), Devices: 4 * nodes, Seed: seed})
	if err != nil {
		return nil, err
	}
	s := &Stand{Cluster: cluster.Uniform("losses", nodes, 4, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16), Jobs: r, Prices: simulated.Prices{Restart: unit.Minute}}
	if !reports {
		return s, nil
	}
	s.Jobs = &reporting{Reader: r, rng: rand.New(rand.NewPCG(seed, 77)), early: early}
	s.Set = func(c *simulated.Config) { c.ObserveEvery = 5 * unit.Minute }
	ended, short := 0.0, 0.0
	s.Commit = func(v plan.View, c *plan.Commit) {
		for i := range c.Changes {
			if x := &c.Changes[i]; x.Verb == plan.Finish {
				if ended++; v.Job(x.Job).Loss > v.ProfileOf(x.Job).TargetLoss {
					short++
				}
			}
		}
	}
	s.Figures = func(*Finished) map[string]float64 {
		return map[string]float64{"ended_early": ended, "ended_above_target": short}
	}
	return s, nil
}

// reporting gives jobs losses and targets.
type reporting struct {
	trace.Reader
	rng   *rand.Rand
	early float64
}

// Next returns the next job.
func (r *reporting) Next() (workload.Job, workload.Truth, error) {
	job, truth, err := r.Reader.Next()
	if err != nil {
		return job, truth, err
	}
	truth.Loss = [3]float64{.05 + .45*r.rng.Float64(), 1, .1 * r.rng.Float64()}
	reached := 100.
	if r.rng.Float64() < r.early {
		reached = 20 + 60*r.rng.Float64()
	}
	job.TargetLoss = 1/(truth.Loss[0]*reached+truth.Loss[1]) + truth.Loss[2]
	return job, truth, nil
}
