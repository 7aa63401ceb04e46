package calendar_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// full is a cluster of 8-device nodes full of runs of 1, 2 and 4 devices, and 64
// claims of gangs of 64.
func full(b *testing.B, devices int) (*scene, plan.JobID) {
	b.Helper()
	sc := &scene{s: plan.NewState(cluster.Uniform("gpus", devices/8, 8, cluster.Model{Name: "gpu"}, 16)), ends: map[plan.RunID]unit.Time{}}
	r := rand.New(rand.NewPCG(1, 1))
	for node := range plan.NodeID(devices / 8) {
		for left := int32(8); left > 0; {
			n := min(left, 1<<r.IntN(3))
			sc.run(node, n, unit.Time(1+r.IntN(1e9)))
			left -= n
		}
	}
	return sc, sc.job(64)
}

func Benchmark(b *testing.B) {
	for _, devices := range []int{1000, 10000} {
		sc, gang := full(b, devices)
		bench := func(name string, f func()) {
			b.Run(fmt.Sprint(name, "/", devices), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		ends := make([]unit.Time, len(sc.s.Runs))
		for run := range ends {
			ends[run] = sc.ends[plan.RunID(run)]
		}
		look := func() { sc.cal.Look(sc.s.View(), func(run plan.RunID) (unit.Time, bool) { return ends[run], false }) }
		look()
		bench("look", look)
		bench("earliest", func() { sc.cal.Earliest(gang, 64, unit.Hour) })
		claim, _ := sc.cal.Earliest(gang, 64, unit.Hour)
		sc.cal.Insert(0, claim)
		var holds []plan.Hold
		bench("holds-easy", func() { holds = sc.cal.Holds(0, unit.Time(unit.Hour), holds[:0]) })
		bench("revise-easy", func() { sc.cal.Revise(nil) })
		for range 15 {
			job := sc.job(64)
			if claim, ok := sc.cal.Earliest(job, 64, unit.Hour); ok {
				sc.cal.Insert(len(sc.cal.Claims()), claim)
			}
		}
		bench("holds-16-claims", func() { holds = sc.cal.Holds(0, unit.Time(unit.Hour), holds[:0]) })
		bench("revise-16-claims", func() { sc.cal.Revise(nil) })
	}
}
