package gavel

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile/oracle"
	"github.com/musterdl/muster/report"
	"github.com/musterdl/muster/schedule/scheduletest"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

// TestJointSuite: the contract of all joint deciders. By default the twin divides,
// which takes a tenth of the time.
func TestJointSuite(t *testing.T) {
	for _, policy := range Policies {
		t.Run(policy, func(t *testing.T) {
			c := Default()
			c.Policy = policy
			if os.Getenv("MUSTER_LONG") != "1" {
				c.MostJobs = 0
			}
			scheduletest.ConformJoint(t, func() allocate.Joint { return New(c) })
		})
	}
}

// TestEngine runs the bundled trace through the engine, with the rates as menus: the
// strategy is the simulation's.
func TestEngine(t *testing.T) {
	open := data(t)
	mean := map[string]float64{}
	for _, policy := range []string{Agnostic, MaxMin} {
		mean[policy] = engineHours(t, bundledTrace(t, open, "max_min_fairness.trace"), policy)
		t.Logf("%s: mean JCT %.3f h", policy, mean[policy])
	}
	within(t, "mean JCT in h, aware", mean[MaxMin], 4.06*.9, 4.06*1.1)
	within(t, "mean JCT in h, agnostic", mean[Agnostic], 5.55*.9, 5.55*1.1)
	within(t, "their ratio", mean[MaxMin]/mean[Agnostic], .67, .79)
}

func engineHours(t *testing.T, trials []*trial, policy string) float64 {
	c := &cluster.Cluster{Name: "gavel"}
	rack := c.AddRack(cluster.Rack{Name: "rack"})
	for k, devices := range []int{8, 16, 24} {
		model := c.AddModel(cluster.Model{Name: gpus[k], Memory: 16 << 10, Speed: 1})
		c.AddNode(cluster.Node{Name: "all-" + gpus[k], Rack: rack, Model: model, CPU: 640 * unit.Whole, Memory: 2560 << 10}, devices)
	}
	var jobs scheduletest.Jobs
	for i, tr := range trials {
		j := scheduletest.Job{Job: workload.Job{Name: fmt.Sprint("j", i), Gang: int32(tr.gang), Devices: 1, Share: unit.Whole,
			Checkpoint: workload.Checkpoint{OnRequest: true}, Submit: unit.Time(tr.arrival * float64(unit.Second))},
			Truth: workload.Truth{Duration: unit.Duration(tr.steps / tr.rate[0] * float64(unit.Second))}}
		for k, rate := range tr.rate {
			if rate > 0 {
				j.Job.Menu = append(j.Job.Menu, workload.Offer{Model: gpus[k], Workers: int32(tr.gang), Rate: rate / tr.rate[0]})
			}
		}
		jobs = append(jobs, j)
	}
	config := Default()
	config.Policy = policy
	o, err := scheduletest.Run(scheduletest.JointConfig(c, jobs, New(config), oracle.Estimator{}))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, j := range o.Jobs {
		if j.Outcome != report.Finished {
			t.Fatalf("job %s is %s", j.Name, j.Outcome)
		}
		sum += j.End.Sub(j.Submit).Seconds() / 3600
	}
	return sum / float64(len(o.Jobs))
}

// TestMemory: what is recalled is what was remembered, and nothing else is.
func TestMemory(t *testing.T) {
	m := memory{roundEnd: 7, divided: -1, booked: 3, ended: true, room: []int64{1000, 2000}, jobs: []standing{
		{job: 2, kind: plan.None, x: []int64{1, 2}, got: []int64{3, 4}, deficit: []int64{-5, 6}},
		{job: 9, kind: 1, answered: true, x: []int64{0, 0}, got: []int64{0, 0}, deficit: []int64{0, 0}}}}
	var back memory
	if err := back.Recall(m.Remember()); err != nil || !bytes.Equal(back.Remember(), m.Remember()) || len(back.jobs) != 2 || back.jobs[0].deficit[0] != -5 {
		t.Errorf("recalled %+v, %v", back, err)
	}
	for _, bad := range [][]byte{nil, m.Remember()[1:], append(m.Remember(), 0)} {
		if New(Default()).Recall(bad) == nil {
			t.Errorf("%d bytes that are no memory were taken for one", len(bad))
		}
	}
}
