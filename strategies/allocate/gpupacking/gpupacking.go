// Package gpupacking places each worker where it breaks least into what is untouched:
// best on devices that are already shared, the fuller the better; else on free devices
// of a node in use, few of them; else on a free node, small ones first.
//
// Read: the GPU-packing baseline of the FGD artefact (Weng et al., ATC 2023;
// hkust-adsl/kubernetes-scheduler-simulator), with its points and their coarseness. Work
// without devices has no preference there: it goes to the first node, by name there and by
// id here. The artefact draws the order of the nodes; so does the claim of FGD.
package gpupacking

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/scored"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "gpu-packing", Part: allocate.PlacePart, Status: "read",
	Source: "baseline of FGD (Weng et al., ATC 2023)",
	Idea:   "shared devices first, then free devices of a node in use, then free nodes",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// The points of the three cases: shared devices get most less what is free on them,
// free devices of a used node half less their number, free nodes a third less theirs.
const (
	most  = 100
	half  = most / 2
	third = most / 3
)

// New returns the placer.
func New() *scored.Placer {
	var free []int32 // scratch
	return scored.New(func(_ plan.View, n *scored.Node, shape *plan.Shape) int64 {
		if shape.Devices == 0 {
			return 0
		}
		if whole := n.Whole(); int(whole) == len(n.Free) {
			return int64(max(third-whole, whole))
		}
		free = append(free[:0], n.Free...)
		slices.Sort(free)
		left, untouched, room := shape.Devices, int32(0), int64(0)
		for _, f := range free {
			if left == 0 || f < shape.Share {
				continue
			}
			left--
			if f == 1000 {
				untouched++
			}
			room += int64(f) * 100 / 1000
		}
		if untouched > 0 {
			return int64(max(half-untouched, third))
		}
		return max(most-room/10, half)
	})
}
