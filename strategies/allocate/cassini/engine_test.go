package cassini_test

import (
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/cassini"
	"github.com/musterdl/muster/strategies/allocate/spread"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// TestEngine: two gangs over the same two nodes, each iteration 60 ms of computing and 40
// of sending as much as a link carries. Side by side as they begin they take 140 ms;
// shifted against each other in the engine, by regrants that the world obeys, 100.
func TestEngine(t *testing.T) {
	var jobs scheduletest.Jobs
	for _, name := range []string{"a", "b"} {
		jobs = append(jobs, scheduletest.Job{Job: workload.Job{Name: name, Resources: workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole},
			Traits: workload.Traits{Traffic: 1000,
				Phase: workload.Phase{Compute: 60 * unit.Millisecond, Communicate: 40 * unit.Millisecond}}}, Truth: workload.Truth{Duration: unit.Hour}})
	}
	mean := func(shift bool) float64 {
		parts := scheduletest.With(fifo.New(fifo.Default()))
		parts.Placer = spread.New(spread.Default())
		if s := cassini.New(); shift {
			parts.Rater = s
		}
		o, err := scheduletest.Run(scheduletest.Config(scheduletest.Nodes(2, 2, 1000), jobs, parts))
		if err != nil || !o.Balanced {
			t.Fatalf("balanced %v, %v", o.Balanced, err)
		}
		return o.AvgJCTSec / 3600
	}
	if got := mean(false); got < 1.38 || got > 1.42 {
		t.Errorf("without shifts an hour's work takes %.3f h, want 1.40", got)
	}
	if got := mean(true); got > 1.01 {
		t.Errorf("with shifts an hour's work takes %.3f h, want 1.00", got)
	}
}
