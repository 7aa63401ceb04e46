package mps

import (
	"github.com/musterdl/muster/allocate/interfere"
	"github.com/musterdl/muster/plan"
)

// Measure runs the two pairs of the catalogue's acceptance through the interference
// model: jobs that alone use 40 % and 90 % of the SMs, and half as much of the memory
// bandwidth, at ceilings of 50 % each. A fault of one is then put to the fence.
func Measure(uint64) map[string]float64 {
	figures := map[string]float64{"ended_by_one_fault": 1}
	for name, sm := range map[string]float64{"small": .4, "large": .9} {
		t := interfere.Tenant{Demand: interfere.Demand{SM: sm, Bandwidth: sm / 2}, Ceiling: .5}
		figures[name+"_over_solo"] = interfere.Default().Rates([]interfere.Tenant{t, t}, nil)[0]
	}
	if plan.MPS.Falls() {
		figures["ended_by_one_fault"]++
	}
	return figures
}
