package simulated_test

import (
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

// TestRWA runs the generated trace RW-A, 480 jobs on 60 devices at a load of 0.95.
func TestRWA(t *testing.T) {
	backfill := meanRWA(t, fifo.New(fifo.Default()))
	if las := meanRWA(t, tiresias.New(tiresias.Default())); las >= backfill {
		t.Errorf("2D-LAS has a mean JCT of %.0f s over five seeds, FIFO with backfill %.0f s: least attained service should win", las, backfill)
	}
}

// meanRWA is the mean JCT of an order over five seeds, in seconds; the order must
// have no memory of its own.
func meanRWA(t *testing.T, order schedule.Order) float64 {
	sum := 0.0
	for seed := range uint64(5) {
		src, err := trace.Open("gen:RW-A", trace.Options{Seed: seed + 1, Devices: 60, Load: .95})
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulated.Run(t.Context(), simulated.Config{Cluster: cluster.Uniform("gpus", 1, 60, cluster.Model{Name: "gpu", Speed: 1}, 1),
			Jobs: trace.WithSaving(src, trace.Saving{}, seed+1), Policy: engine.DefaultPolicy(), Prices: simulated.Prices{Restart: unit.Minute}, Check: seed == 0,
			Scheduler: compose.New(compose.Parts{Estimator: declared.Estimator{}, Order: order, Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Balanced || r.Jobs != 480 || r.Finished != 480 {
			t.Errorf("seed %d: balanced %v, %d of %d jobs finished, expected all of 480", seed+1, r.Balanced, r.Finished, r.Jobs)
		}
		sum += r.AvgJCTSec
	}
	return sum / 5
}
