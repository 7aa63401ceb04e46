package simulated_test

import (
	"fmt"
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

func TestRWA(t *testing.T) {
	gitt := tiresias.Default()
	gitt.Gittins = true
	for _, o := range []struct {
		name  string
		order func() schedule.Order
	}{
		{"fifo", func() schedule.Order { return fifo.New(fifo.Default()) }},
		{"fifo-hol", func() schedule.Order { return fifo.New(fifo.Config{}) }},
		{"2dlas", func() schedule.Order { return tiresias.New(tiresias.Default()) }},
		{"gittins", func() schedule.Order { return tiresias.New(gitt) }},
	} {
		sum, pre := 0.0, int64(0)
		for seed := range 5 {
			src, err := trace.Open("gen:RW-A", trace.Options{Seed: uint64(seed + 1), Devices: 60, Load: .95})
			if err != nil {
				t.Fatal(err)
			}
			c := cluster.Uniform("gpus", 1, 60, cluster.Model{Name: "gpu", Speed: 1}, 1)
			r, err := simulated.Run(simulated.Config{Cluster: c, Jobs: src, Policy: engine.DefaultPolicy(), Restart: 60 * unit.Second, Check: seed == 0,
				Scheduler: compose.New(compose.Parts{Estimator: declared.Estimator{}, Order: o.order(), Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})})
			if err != nil {
				t.Fatal(err)
			}
			if !r.Balanced || r.Finished != 480 {
				t.Errorf("balanced %v finished %d", r.Balanced, r.Finished)
			}
			sum += r.AvgJCTSec
			pre += r.Preemptions
		}
		fmt.Println(o.name, sum/5, pre/5)
	}
}
