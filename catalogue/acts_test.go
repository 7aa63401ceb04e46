package catalogue_test

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/allocate/salus"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule/scheduletest"
	"github.com/musterdl/muster/serve/igniter"
	"github.com/musterdl/muster/strategy"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

// did is what a change does beyond starting and stopping its run.
func did(c *plan.Change, into map[strategy.Act]bool) {
	t := c.Terms
	if c.Verb != plan.Start && c.Verb != plan.Regrant {
		t = plan.DefaultTerms()
	}
	for act, does := range map[strategy.Act]bool{
		strategy.Time:     c.Verb == plan.Suspend || c.Verb == plan.Resume || t.Turn > 0,
		strategy.Share:    t.Share > 0 || t.Ceiling > 0 && t.Guest == plan.None,
		strategy.Filler:   t.Guest != plan.None && t.Bond == plan.InGaps,
		strategy.Equal:    t.Guest != plan.None && t.Bond == plan.AsEqual,
		strategy.Merge:    t.Guest != plan.None && t.Bond == plan.InOne,
		strategy.Batch:    t.Batch > 0,
		strategy.Pipeline: t.Plan != plan.None,
		strategy.Class:    t.Class > 0,
		strategy.Weight:   t.Weight > 0,
		strategy.Shift:    t.Shift > 0,
		strategy.Reshape:  c.Verb == plan.Reshape,
		strategy.Rent:     c.Verb == plan.Rent || c.Verb == plan.Return,
	} {
		into[act] = into[act] || does
	}
}

// everything is a cluster and jobs that give each strategy reason to do what it can.
func everything() (*cluster.Cluster, scheduletest.Jobs) {
	table, _ := envelope.MIG("A100", 0)
	c := &cluster.Cluster{Name: "everything"}
	model := c.AddModel(cluster.Model{Name: "A100", Memory: 40 << 10, Speed: 1, Geometries: table.Geometries()})
	for i := range 4 {
		rack := int32(0)
		if i%2 == 0 {
			rack = c.AddRack(cluster.Rack{Name: fmt.Sprint("rack", i), Uplink: 2000})
		} else {
			rack = int32(len(c.Racks) - 1)
		}
		c.AddNode(cluster.Node{Name: fmt.Sprint("node", i), Rack: rack, Model: model, CPU: 64 * unit.Whole, Memory: 512 << 10, Uplink: 1000,
			Rental: i == 3, MilliPerHour: 1000}, 2)
	}
	layer := workload.Layer{Forward: 5 * unit.Millisecond, Backward: 10 * unit.Millisecond, ParamKiB: 100, OutputKiB: 10, ActivationKiB: 10}
	kinds := []workload.Job{
		{Gang: 1, Share: 400, Memory: 4 << 10},
		{Gang: 1, Memory: 4 << 10, Persistent: 1 << 10},
		{Gang: 3, Traffic: 800, Phase: workload.Phase{Compute: 60 * unit.Millisecond, Communicate: 40 * unit.Millisecond}},
		{Gang: 1, Opportunistic: true, Memory: 2 << 10},
		{Gang: 2, Phase: workload.Phase{Compute: 30 * unit.Millisecond, Communicate: 70 * unit.Millisecond}},
		{Gang: 1, Base: "roberta-base", Group: "tuning", Memory: 2 << 10},
		{Gang: 1, Class: "simple", Service: workload.Service{RatePerSec: 100, SLO: 80 * unit.Millisecond}},
		{Gang: 2, Pipeline: workload.Pipeline{Stages: 2, Microbatches: 4, Layers: slices.Repeat([]workload.Layer{layer}, 4)}},
		{Gang: 1, Sizes: []int32{1, 2, 4}},
	}
	var jobs scheduletest.Jobs
	for i := range 72 {
		j := kinds[i%len(kinds)]
		j.Name, j.Submit, j.Devices = fmt.Sprint("job", i), unit.Time(i)*unit.Time(40*unit.Second), 1
		if j.Share == 0 {
			j.Share = unit.Whole
		}
		d := unit.Duration(5+i*7%23) * unit.Minute
		j.Estimate, j.Deadline, j.Checkpoint = d, 12*d, workload.Checkpoint{Every: unit.Minute, OnRequest: true}
		jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: d, Busy: .5, Merge: .1}})
	}
	return c, jobs
}

// listed is a source of jobs.
type listed struct{ left scheduletest.Jobs }

func (l *listed) Next() (j workload.Job, t workload.Truth, err error) {
	if len(l.left) == 0 {
		return j, t, io.EOF
	}
	j, t = l.left[0].Job, l.left[0].Truth
	l.left = l.left[1:]
	return j, t, nil
}

// TestActs: what a strategy does with runs in a simulation, beyond starting and stopping
// them, is what it says it does: all of it, and nothing else.
func TestActs(t *testing.T) {
	simple := igniter.Default()
	simple.Models = []igniter.Model{{Name: "simple", K: [5]float64{0, 100, 0, 0, 0}, Cache: igniter.Line{At0: 10}, CacheSlowdown: .001}}
	lanes := salus.Default()
	lanes.Lanes = 2
	for _, e := range catalogue.All {
		if e.Name == "external" {
			continue // it is another program, which can only start and stop
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			ref := e.Name
			if e.Part == "place" && (e.Name == "igniter" || e.Name == "antman") {
				ref += "+advantage"
			}
			composition, err := catalogue.Resolve(ref)
			if err != nil {
				t.Fatal(err)
			}
			switch e.Name {
			case "igniter":
				composition = composition.WithOptions("igniter", simple)
			case "salus":
				composition = composition.WithOptions("salus", lanes)
			}
			built, err := composition.Build(catalogue.Env{Seed: 1}, false)
			if err != nil {
				t.Fatal(err)
			}
			c, jobs := everything()
			saw := map[strategy.Act]bool{}
			_, err = simulated.Run(simulated.Config{Cluster: c, Jobs: &listed{jobs}, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), TellTruth: built.TellTruth,
				Prices: simulated.Prices{Restart: 20 * unit.Second}, Until: unit.Time(8 * unit.Hour), Commit: func(_ plan.View, commit *plan.Commit) {
					for i := range commit.Changes {
						did(&commit.Changes[i], saw)
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(saw, func(_ strategy.Act, is bool) bool { return !is })
			if e.Step != "pipeline" || e.Status == "null" {
				delete(saw, strategy.Pipeline) // the plan is that of the null
			}
			for _, act := range strategy.Acts {
				if declared := slices.Contains(e.Acts, act); declared != saw[act] {
					t.Errorf("%s: declared %v, seen %v", act, declared, saw[act])
				}
			}
		})
	}
}
