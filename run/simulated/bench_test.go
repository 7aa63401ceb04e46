package simulated_test

import (
	"os"
	"testing"

	"github.com/musterdl/muster/allocate/firstfit"
	"github.com/musterdl/muster/allocate/fixed"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/flow/maxmin"
	"github.com/musterdl/muster/profile/declared"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/fifo"
	"github.com/musterdl/muster/schedule/tiresias"
	"github.com/musterdl/muster/trace"
	"github.com/musterdl/muster/unit"
)

func benchmarkTrace(b *testing.B, ref string, nodes int, order func() schedule.Order) {
	if _, err := os.Stat("../../../shared/data"); err != nil {
		b.Skip("no ../shared/data")
	}
	for range b.N {
		src, err := trace.Open(ref, trace.Options{Seed: 1, Devices: nodes * 8})
		if err != nil {
			b.Fatal(err)
		}
		c := cluster.Uniform("gpus", nodes, 8, cluster.Model{Name: "gpu", Speed: 1}, 32)
		r, err := simulated.Run(simulated.Config{Cluster: c, Jobs: src, Policy: engine.DefaultPolicy(), Restart: 60 * unit.Second,
			Scheduler: compose.New(compose.Parts{Estimator: declared.Estimator{}, Order: order(), Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})})
		if err != nil {
			b.Fatal(err)
		}
		if !r.Balanced {
			b.Fatal("ledger")
		}
		b.ReportMetric(float64(r.Jobs)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		b.ReportMetric(r.AvgJCTSec, "jct")
		b.ReportMetric(r.AvgWaitSec, "wait")
		b.ReportMetric(float64(r.LongestQueue), "queue")
		b.ReportMetric(float64(r.Preemptions), "preempt")
	}
}

func BenchmarkVenusFifo(b *testing.B) {
	benchmarkTrace(b, "helios:../../../shared/data/helios", 74, func() schedule.Order { return fifo.New(fifo.Default()) })
}
func BenchmarkVenusTiresias(b *testing.B) {
	benchmarkTrace(b, "helios:../../../shared/data/helios", 74, func() schedule.Order { return tiresias.New(tiresias.Default()) })
}
func BenchmarkPhillyFifo(b *testing.B) {
	benchmarkTrace(b, "philly:../../../shared/data/philly", 80, func() schedule.Order { return fifo.New(fifo.Default()) })
}
func BenchmarkPhillyTiresias(b *testing.B) {
	benchmarkTrace(b, "philly:../../../shared/data/philly", 80, func() schedule.Order { return tiresias.New(tiresias.Default()) })
}
