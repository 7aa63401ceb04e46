package mlfs

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// mix is a generated history on a cluster.
type mix struct {
	trace          string
	nodes, devices int
	load           float64
	early          float64 // part of the jobs that reach their target between 20 % and 80 % of their work
	silent         bool    // nobody reports
}

var (
	prime    = mix{trace: "gen:rw-a-prime", nodes: 8, devices: 4, load: .95, silent: true}
	overload = mix{trace: "gen:rw-a", nodes: 15, devices: 4, load: 1.3, early: .2}
)

// jobs draws the history: losses fall like 1/(a k + 1), to between 1/6 and 1/51; a job's
// target is the loss at its end, but of the early ones.
func (m mix) jobs(t testing.TB, seed uint64) (jobs scheduletest.Jobs) {
	t.Helper()
	r, err := trace.Open(m.trace, trace.Options{Load: m.load, Devices: m.nodes * m.devices, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rng := rand.New(rand.NewPCG(seed, 77))
	for {
		job, truth, err := r.Next()
		if errors.Is(err, io.EOF) {
			return jobs
		}
		if err != nil {
			t.Fatal(err)
		}
		if !m.silent {
			truth.Loss = [3]float64{.05 + .45*rng.Float64(), 1, .1 * rng.Float64()}
			reached := 100.
			if rng.Float64() < m.early {
				reached = 20 + 60*rng.Float64()
			}
			job.TargetLoss = 1/(truth.Loss[0]*reached+truth.Loss[1]) + truth.Loss[2]
		}
		job.Checkpoint = workload.Checkpoint{OnRequest: true, Load: unit.Minute}
		jobs = append(jobs, scheduletest.Job{Job: job, Truth: truth})
	}
}

// outcome is what a history came to.
type outcome struct {
	jct         float64 // mean, seconds
	preemptions int64
	shed, short int // jobs ended before all their work was done; of those, above their target
}

// run simulates a history. What knows the truth is told it.
func (m mix) run(t testing.TB, jobs scheduletest.Jobs, order schedule.Order, truth bool) outcome {
	t.Helper()
	parts := scheduletest.With(order)
	if parts.Estimator = profile.Estimator(declared.Estimator{}); truth {
		parts.Estimator = oracle.Estimator{}
	}
	config := scheduletest.Config(scheduletest.Nodes(m.nodes, m.devices, 0), jobs, parts)
	config.Scheduler, config.Check = compose.New(parts), false
	if !m.silent {
		config.ObserveEvery = 5 * unit.Minute
	}
	var o outcome
	config.Commit = func(v plan.View, c *plan.Commit) {
		for i := range c.Changes {
			if x := &c.Changes[i]; x.Verb == plan.Finish {
				o.shed++
				if v.Job(x.Job).Loss > v.ProfileOf(x.Job).TargetLoss {
					o.short++
				}
			}
		}
	}
	got, err := scheduletest.Run(config)
	if err != nil || !got.Balanced || got.Finished != int64(len(jobs)) {
		t.Fatalf("%v, balanced %v, %d of %d finished", err, got.Balanced, got.Finished, len(jobs))
	}
	o.jct, o.preemptions = got.AvgJCTSec, got.Preemptions
	return o
}

// mean is the mean JCT over seeds from first on.
func (m mix) mean(t testing.TB, first uint64, seeds int, truth bool, order func() schedule.Order) (sum outcome, each []float64) {
	for s := range uint64(seeds) {
		o := m.run(t, m.jobs(t, first+s), order(), truth)
		sum.jct += o.jct / float64(seeds)
		sum.preemptions, sum.shed, sum.short = sum.preemptions+o.preemptions, sum.shed+o.shed, sum.short+o.short
		each = append(each, o.jct)
	}
	return sum, each
}
