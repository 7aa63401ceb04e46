package compose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/dualpipe"
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
	if len(made) != 1 || !strings.Contains(made[0].Schedule, "even numbers") || !strings.Contains(string(made[0].JSON), `["0F0","0F1","0F2","0F3","0B0"`) {
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
