package compose_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

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
