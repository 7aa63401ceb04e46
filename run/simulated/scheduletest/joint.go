package scheduletest

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// JointConfig is a checked simulation of jobs under a joint decider, first fit and the
// nulls of the other steps.
func JointConfig(c *cluster.Cluster, jobs Jobs, decider allocate.Joint, estimator profile.Estimator) simulated.Config {
	parts := compose.Parts{Joint: decider, Estimator: estimator, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}}
	_, truth := strategy.Can[profile.Oracular](estimator)
	return simulated.Config{Cluster: c, Jobs: jobs.Source(), Scheduler: compose.New(parts), Policy: engine.DefaultPolicy(),
		TellTruth: truth, Check: true, Prices: simulated.Prices{Arrival: unit.Minute}}
}

// ConformJoint proves that joint deciders made by the function keep the contract: the
// state stays legal and the ledger balanced, gangs are whole, every job that was
// admitted finishes, with estimates or without, on unlike devices and through lost
// nodes, whoever waits for long is told why, an empty cluster is survived, and the same
// history gives the same decisions.
func ConformJoint(t *testing.T, newDecider func() allocate.Joint) {
	t.Run("empty cluster", func(t *testing.T) { conformJoint(t, Nodes(1, 4, 0), nil, newDecider, oracle.Estimator{}, false) })
	t.Run("one job", func(t *testing.T) {
		job := Job{workload.Job{Name: "only", Resources: workload.Resources{Gang: 4, Devices: 1, Share: unit.Whole}}, workload.Truth{Duration: unit.Hour}}
		o := conformJoint(t, Nodes(1, 4, 0), Jobs{job}, newDecider, oracle.Estimator{}, false)
		if end := o.Jobs[0].End; end > unit.Time(unit.Hour+10*unit.Minute) {
			t.Errorf("an hour's work alone ended after %s: nobody was in its way", unit.Duration(end))
		}
	})
	for name, estimator := range map[string]profile.Estimator{"history": oracle.Estimator{}, "without estimates": declared.Estimator{}} {
		t.Run(name, func(t *testing.T) {
			draws.Cases{Few: 40}.Check(t, func(t *rapid.T) {
				c := unlike(rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices"))
				conformJoint(t, c, drawElastic(t, c), newDecider, estimator, rapid.IntRange(0, 3).Draw(t, "breaks") == 0)
			})
		})
	}
}

// patience is how long a job may wait without being told why: a little longer than the
// longest rhythm of any decider.
const patience = 11 * unit.Minute

// saysWhy proves that whoever waits for long has a reason that its owner can read.
func saysWhy(t fataler, v plan.View) {
	for id := range plan.JobID(v.Jobs()) {
		j := v.Job(id)
		if j.Phase == plan.Waiting && j.Run == plan.None && v.Now().Sub(j.Since) > patience && (j.Reason.Code == plan.NoReason || j.Reason.Code == plan.New) {
			t.Fatalf("at %s job %s has waited since %s and is not told why", unit.Duration(v.Now()), v.Name(id), unit.Duration(j.Since))
		}
	}
}

// unlike is a cluster whose last node has devices of another model, half as fast.
func unlike(nodes, devices int) *cluster.Cluster {
	c := &cluster.Cluster{Name: "unlike"}
	fast := c.AddModel(cluster.Model{Name: "fast", Memory: 16 << 10, Speed: 1})
	slow := c.AddModel(cluster.Model{Name: "slow", Memory: 16 << 10, Speed: 0.5})
	rack := c.AddRack(cluster.Rack{Name: "rack"})
	for i := range nodes {
		model := fast
		if i > 0 && i == nodes-1 {
			model = slow
		}
		c.AddNode(cluster.Node{Name: "n" + strconv.Itoa(i), Rack: rack, Model: model, CPU: 64 * unit.Whole, Memory: 256 << 10}, devices)
	}
	return c
}

// drawElastic draws a history of rigid and elastic jobs, some with a menu, that fit a
// single node.
func drawElastic(t *rapid.T, c *cluster.Cluster) Jobs {
	most := c.Nodes[0].Count
	jobs := drawJobs(t, most)
	for i := range jobs {
		j := &jobs[i]
		if j.Gang == 1 && j.Share == unit.Whole && most >= 2 && rapid.Bool().Draw(t, "elastic") {
			j.Sizes = []int32{1, 2}
			if rapid.Bool().Draw(t, "menu") {
				j.Job.Menu = []workload.Offer{{Workers: 1, Rate: 1}, {Workers: 2, Rate: 1.6}, {Model: "slow", Workers: 1, Rate: 0.4}, {Model: "slow", Workers: 2, Rate: 0.7}}
			}
		}
		j.Memory = unit.MiB(rapid.IntRange(0, 8).Draw(t, "memory")) << 10
	}
	return jobs
}

func conformJoint(t fataler, c *cluster.Cluster, jobs Jobs, newDecider func() allocate.Joint, estimator profile.Estimator, breaks bool) Outcome {
	run := func() Outcome {
		config := JointConfig(c, jobs, newDecider(), estimator)
		config.Prices.Restart = 30 * unit.Second
		observe(&config, func(v plan.View, _ *plan.Commit) { saysWhy(t, v) })
		if breaks {
			config.Breaks = simulated.Breaks{Seed: 7, NodeEvery: unit.Hour, NodeFor: 10 * unit.Minute}
		}
		return mustRun(t, config)
	}
	return twice(t, run)
}

// twice plays a history twice: every job that was admitted finishes, and the decisions are
// the same.
func twice(t fataler, run func() Outcome) Outcome {
	o := run()
	for _, j := range o.Jobs {
		if j.Outcome != report.Finished && j.Outcome != report.Refused {
			t.Fatalf("job %s is %s", j.Name, j.Outcome)
		}
	}
	if again := run(); again.DecisionHash != o.DecisionHash {
		t.Fatalf("the same history gave other decisions: %s, then %s", o.DecisionHash, again.DecisionHash)
	}
	return o
}
