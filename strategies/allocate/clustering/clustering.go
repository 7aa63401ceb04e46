// Package clustering keeps work of a kind together: tasks on a part of a device, on one
// device, on two and so on are kinds, and a worker goes best to a node where only its
// kind runs, then to one where it runs among others, then to a free node, and last to
// one where only others run. Within each, the node with the least free goes first.
//
// Read: the GPU-clustering baseline of the FGD artefact (Weng et al., ATC 2023;
// hkust-adsl/kubernetes-scheduler-simulator), which takes the idea from Gandiva (Xiao et
// al., OSDI 2018), with its points and their coarseness. Work without devices has no
// kind: it goes to the first node, and the artefact draws the order of the nodes.
package clustering

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/scored"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "clustering", Part: allocate.PlacePart, Status: "read",
	Source: "baseline of FGD (Weng et al., ATC 2023), after Gandiva (Xiao et al., OSDI 2018)",
	Idea:   "nodes where only tasks with equally many devices run",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// The points of a node by who is on it; a full node gets a quarter more than an empty.
const (
	quarter    = 25
	onlyKind   = 3 * quarter
	amongKinds = 2 * quarter
	free       = quarter
	onlyOthers = 0
)

// New returns the placer.
func New() *scored.Placer {
	return scored.New(func(v plan.View, n *scored.Node, shape *plan.Shape) int64 {
		if shape.Devices == 0 || n.MostTotal == 0 {
			return 0
		}
		return quarter*(n.MostTotal-n.Total)/n.MostTotal + company(v, n.ID, kind(shape))
	})
}

// kind is how many devices a worker takes; 0 is a part of one.
func kind(shape *plan.Shape) int32 {
	if shape.Share < 1000 {
		return 0
	}
	return shape.Devices
}

// company says whether the kind runs on the node, and whether others do.
func company(v plan.View, id plan.NodeID, of int32) int64 {
	same, others := false, false
	n := v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		v.GrantsOn(d, func(g plan.Grant) {
			if kind(v.Shape(v.Run(g.Run).Job)) == of {
				same = true
			} else {
				others = true
			}
		})
	}
	switch {
	case same && !others:
		return onlyKind
	case same:
		return amongKinds
	case !others:
		return free
	}
	return onlyOthers
}
