package pipelines_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/dualpipe"
	"github.com/musterdl/muster/strategies/pipeline/equal"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

// TestNoPlan: where a strategy has no plan for a job, its pipeline goes as without one.
func TestNoPlan(t *testing.T) {
	filled := scheduletest.Simple()
	filled[pipeline.SequencePart] = strategy.Filling{Strategy: dualpipe.Both{}}
	j := workload.Job{Name: "odd", Resources: workload.Resources{Gang: 3, Devices: 1, Share: unit.Whole}}
	j.Pipeline = workload.Pipeline{Stages: 3, Microbatches: 4, Layers: slices.Repeat([]workload.Layer{{Forward: unit.Second, Backward: unit.Second}}, 3)}
	config := scheduletest.Config(scheduletest.Nodes(1, 8, 0), scheduletest.Jobs{{Job: j, Truth: workload.Truth{Duration: unit.Minute}}}, compose.PartsOf(filled, scheduletest.Simple()))
	var made []plan.Pipeline
	config.Hooks.Commit = func(_ plan.View, c *plan.Commit) {
		for _, aside := range c.Asides {
			if aside.Plan != nil {
				made = append(made, *aside.Plan)
			}
		}
	}
	if _, err := scheduletest.Run(config); err != nil {
		t.Fatal(err)
	}
	if len(made) != 1 || !strings.Contains(made[0].Lacks, "even numbers") || !strings.Contains(string(made[0].JSON), `["0F0","0F1","0F2","0F3","0B0"`) {
		t.Errorf("it goes by %+v", made)
	}
}

// TestPlansAreStoredOnce: a thousand jobs of two kinds go by two plans, and the journal has
// each once.
func TestPlansAreStoredOnce(t *testing.T) {
	var jobs scheduletest.Jobs
	for i := range 1000 {
		j := workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(i) * unit.Time(unit.Minute), Resources: workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole}}
		j.Pipeline = workload.Pipeline{Stages: 2, Microbatches: int32(4 + 2*(i%2)), Layers: slices.Repeat([]workload.Layer{{Forward: unit.Second, Backward: unit.Second}}, 4)}
		jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Minute}})
	}
	filled := scheduletest.Simple()
	filled[pipeline.CutPart], filled[pipeline.SequencePart] = strategy.Filling{Strategy: dpcut.Partitioner{}}, strategy.Filling{Strategy: zerobubble.H1{}}
	config := scheduletest.Config(scheduletest.Nodes(2, 8, 0), jobs, compose.PartsOf(filled, scheduletest.Simple()))
	starts, plans := 0, 0
	config.Hooks.Commit = func(_ plan.View, c *plan.Commit) {
		for _, change := range c.Changes {
			if change.Verb == plan.Start {
				starts++
			}
		}
		for _, aside := range c.Asides {
			if aside.Plan != nil {
				plans++
			}
		}
	}
	if _, err := scheduletest.Run(config); err != nil {
		t.Fatal(err)
	}
	if starts != 1000 || plans != 2 {
		t.Errorf("%d starts, %d plans: want 1000 and 2", starts, plans)
	}
}

// TestSeveralPipelines: a job of twice as many workers as its pipeline needs is two, which go as
// fast as one by a plan that is one's.
func TestSeveralPipelines(t *testing.T) {
	j := workload.Job{Name: "two", Resources: workload.Resources{Gang: 8, Devices: 1, Share: unit.Whole}}
	j.Pipeline = workload.Pipeline{Stages: 2, Microbatches: 4, Tensor: 2, Layers: slices.Repeat([]workload.Layer{{Forward: unit.Second, Backward: unit.Second}}, 2)}
	config := scheduletest.Config(scheduletest.Nodes(1, 8, 0), scheduletest.Jobs{{Job: j, Truth: workload.Truth{Duration: unit.Minute}}}, compose.PartsOf(scheduletest.Simple(), scheduletest.Simple()))
	var made pipeline.Plan
	config.Hooks.Commit = func(_ plan.View, c *plan.Commit) {
		for _, aside := range c.Asides {
			if aside.Plan != nil {
				if err := json.Unmarshal(aside.Plan.JSON, &made); err != nil {
					t.Error(err)
				}
			}
		}
	}
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Orders) != 2 || made.Microbatches != 4 || made.Tensor != 2 {
		t.Errorf("they go by %+v", made)
	}
	// Of five turns each stage works in four.
	if got := o.Jobs[0].End.Sub(o.Jobs[0].Submit); got != 75*unit.Second {
		t.Errorf("a minute of work takes %v, want 1m15s", got)
	}
}

// TestUnlikeDevices: the layers go by how fast the devices are that a run got, and the world
// runs the plan on those: a cut by time ends as many seconds earlier as its slowest stage is
// shorter.
func TestUnlikeDevices(t *testing.T) {
	c := cluster.Uniform("unlike", 1, 1, cluster.Model{Name: "slow", Speed: 1}, 1)
	c.AddNode(cluster.Node{Name: "fast", Model: c.AddModel(cluster.Model{Name: "fast", Speed: 2})}, 1)
	layers := slices.Repeat([]workload.Layer{{Forward: unit.Second, Backward: unit.Second}}, 6)
	j := workload.Job{Name: "two", Resources: workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole},
		Traits: workload.Traits{Pipeline: workload.Pipeline{Stages: 2, Microbatches: 1, Layers: layers}}}
	jobs := scheduletest.Jobs{{Job: j, Truth: workload.Truth{Duration: unit.Minute}}}
	took := func(cut pipeline.Partitioner) unit.Duration {
		filled := scheduletest.Simple()
		filled[pipeline.CutPart] = strategy.Filling{Strategy: cut}
		o, err := scheduletest.Run(scheduletest.Config(c, jobs, compose.PartsOf(filled, scheduletest.Simple())))
		if err != nil {
			t.Fatal(err)
		}
		return o.Jobs[0].End.Sub(o.Jobs[0].Submit)
	}
	// A minute of the ideal, 6 s an iteration on two like devices, is 10 iterations. Of one
	// microbatch the stages follow each other: 3 layers of 2 s and 3 of 1 s, or 2 and 4.
	if got := took(equal.Partitioner{}); got != 90*unit.Second {
		t.Errorf("cut in equal parts they take %v, want 1m30s", got)
	}
	if got := took(dpcut.Partitioner{}); got != 80*unit.Second {
		t.Errorf("cut by time they take %v, want 1m20s", got)
	}
}

// TestMenusPlan: where a planner wrote a job's menu, its run goes by the offer's plan and as fast
// as the offer says, and the plan is stored once.
func TestMenusPlan(t *testing.T) {
	j := workload.Job{Name: "llama", Resources: workload.Resources{Gang: 4, Devices: 1, Share: unit.Whole}}
	j.Menu = []workload.Offer{{Model: "gpu", Workers: 4, Nodes: 2, Rate: 2, Plan: workload.Spread{Name: "tp2 pp2 dp1 zbv m8", Shape: `{"tensor":2}`, Step: unit.Second}}}
	var jobs scheduletest.Jobs
	for i := range 3 {
		j.Name, j.Submit = fmt.Sprint("llama", i), unit.Time(i)*unit.Time(unit.Hour)
		jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Minute}})
	}
	config := scheduletest.Config(scheduletest.Nodes(2, 2, 0), jobs, compose.PartsOf(scheduletest.Simple(), scheduletest.Simple()))
	var made []plan.Pipeline
	config.Hooks.Commit = func(_ plan.View, c *plan.Commit) {
		for _, aside := range c.Asides {
			if aside.Plan != nil {
				made = append(made, *aside.Plan)
			}
		}
	}
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 1 || made[0].Schedule != "tp2 pp2 dp1 zbv m8" || made[0].Iteration != unit.Second || string(made[0].JSON) != `{"tensor":2}` {
		t.Errorf("they go by %+v", made)
	}
	for _, r := range o.Jobs {
		if got := r.End.Sub(r.Submit); got != 30*unit.Second {
			t.Errorf("job %d took %v, want 30s: the offer goes twice as fast", r.ID, got)
		}
	}
}
