package hydro

import (
	"fmt"
	"math/rand/v2"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/unit"
)

// Measure prices a hundred trials by the artefact's table on 1 to 16 devices of 24 GB,
// all of one batch size and of three, and fills the bubbles of a 1F1B pipeline whose
// passes differ from plan by 5 % (standard deviation) with pieces of 2, 5 and 10 ms.
func Measure(seed uint64) map[string]float64 {
	out := map[string]float64{}
	const trials, device = 100, unit.MiB(24 << 10)
	// A context of 600 MiB, then what is left of the table's 11.6 GB for a hundred.
	limit := fuseLimit(device, 600+110, 600+2*110)
	out["limit"] = float64(limit)
	for _, devices := range []int{1, 4, 8, 16} {
		single := cost{first: published.alone}.makespan(split(trials, 1, trials), devices)
		one := published.makespan(split(trials, limit, devices), devices)
		out[fmt.Sprintf("makespan_gain_%d_devices", devices)] = single / one
		var three []int
		for _, n := range []int{34, 33, 33} {
			three = append(three, split(n, limit, max(1, devices/3))...)
		}
		out[fmt.Sprintf("makespan_gain_%d_devices_3_batches", devices)] = single / published.makespan(three, devices)
	}
	t := train{orders: pipeline.OneForwardOneBackward(4, 8), forward: 20 * unit.Millisecond, backward: 40 * unit.Millisecond, transfer: unit.Millisecond, iterations: 20}
	for _, ms := range []unit.Duration{2, 5, 10} {
		piece := ms * unit.Millisecond
		stretch := func() func() float64 {
			r := rand.New(rand.NewPCG(seed, 5))
			return func() float64 { return max(.5, 1+.05*r.NormFloat64()) }
		}
		for name, guard := range map[string]unit.Duration{"": piece, "_unguarded": -piece} {
			x, err := t.interleave(piece, guard, stretch)
			if err != nil {
				panic(err) // the graph is ours
			}
			out[fmt.Sprintf("pipeline_slowdown_%dms%s", ms, name)] = x.slowdown
			out[fmt.Sprintf("bubbles_used_%dms%s", ms, name)] = x.used
		}
	}
	return out
}
