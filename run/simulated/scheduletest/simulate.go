// Package scheduletest is what tests of strategies share: the suite that every
// order passes, scenarios as text files, and small simulations put together in a
// line or two. The strategies' own tests call it.
package scheduletest

import (
	"context"
	"io"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// Job is a job with the truth about it.
type Job struct {
	workload.Job
	workload.Truth
}

// Jobs are the jobs of a history in order of submission. They are a source for one
// simulation each time that Source is called.
type Jobs []Job

// Source yields the jobs.
func (j Jobs) Source() simulated.Source { return &source{j} }

type source struct{ left Jobs }

// Next returns the next job.
func (s *source) Next() (workload.Job, workload.Truth, error) {
	if len(s.left) == 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	j := s.left[0]
	s.left = s.left[1:]
	return j.Job, j.Truth, nil
}

// With composes an order with the truth about run times and the nulls of the other
// steps.
func With(order schedule.Order) compose.Parts {
	return compose.Parts{Estimator: oracle.Estimator{}, Order: order, Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}}
}

// Config is a checked simulation of jobs under composed parts; restarts are free
// unless jobs say otherwise.
func Config(c *cluster.Cluster, jobs Jobs, parts compose.Parts) simulated.Config {
	_, truth := strategy.Can[profile.Oracular](parts.Estimator)
	return simulated.Config{Cluster: c, Jobs: jobs.Source(), Scheduler: compose.New(parts), Policy: engine.DefaultPolicy(),
		TellTruth: truth, Check: true}
}

// Nodes is a cluster of like nodes, with uplinks of so many Mbps; 0 is no limit.
func Nodes(nodes, devices int, uplink unit.Mbps) *cluster.Cluster {
	c := cluster.Uniform("nodes", nodes, devices, cluster.Model{Name: "gpu", Speed: 1}, nodes)
	for i := range c.Nodes {
		c.Nodes[i].Uplink = uplink
	}
	return c
}

// Outcome is a simulation's result with what became of every job, by id.
type Outcome struct {
	report.Result
	Jobs []report.JobRecord
}

// Run simulates to the end.
func Run(config simulated.Config) (Outcome, error) {
	config.Collector = report.NewCollector(report.Limits{Jobs: 1 << 20})
	r, err := simulated.Run(context.Background(), config)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Result: r, Jobs: make([]report.JobRecord, r.Jobs)}
	for _, j := range config.Collector.View().Jobs {
		o.Jobs[j.ID] = j
	}
	return o, err
}

// observe calls f after every decision, where one is wanted, besides what the
// configuration has already.
func observe(config *simulated.Config, f func(v plan.View, c *plan.Commit)) {
	before := config.Commit
	config.Commit = func(v plan.View, c *plan.Commit) {
		if before != nil {
			before(v, c)
		}
		f(v, c)
	}
}
