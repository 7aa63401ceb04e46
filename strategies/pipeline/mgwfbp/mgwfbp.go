// Package mgwfbp merges the gradients of neighbouring layers into one message where the
// start-up that this saves is worth the wait (MG-WFBP, Shi, Chu and Li, INFOCOM 2019;
// HKBU-HPML/MG-WFBP): by their rule, from the last layer to the first, and by a program that
// finds what is done soonest of all ways to merge neighbours.
//
// The rule looks at one layer at a time: what is merged is not parted again, and it takes no
// account of the messages still to come. So it is not always the best; the program is, in as
// many steps as there are pairs of layers.
package mgwfbp

import (
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
)

// Description is what the rule says about itself.
var Description = strategy.Description{
	Name: "mgwfbp", System: "MG-WFBP", Part: overlap.GradientsPart, Status: "read",
	Source: "MG-WFBP (Shi, Chu and Li, INFOCOM 2019), HKBU-HPML/MG-WFBP",
	Idea:   "merge a layer's gradients with those of the layer before, where the wait is below the start-up saved",
	Goal:   "throughput", Needs: "a layer profile", Live: overlap.Live,
}

// OptimalDescription is what the program says about itself.
var OptimalDescription = strategy.Description{
	Name: "optimal-merge", System: "MG-WFBP", Part: overlap.GradientsPart, Status: "ours",
	Source: "a program in the place of the rule of MG-WFBP",
	Idea:   "the merging of neighbouring layers whose last message is there soonest, by dynamic programming",
	Goal:   "throughput", Needs: "a layer profile", Live: overlap.Live,
}

// Rule is that of MG-WFBP.
type Rule struct{}

// Optimal is the program.
type Optimal struct{}

var _, _ overlap.Merger = Rule{}, Optimal{}

// Merge goes from the last layer to the second. Where a layer's message is still under way or
// waits when the gradients of the layer before are there, the two are merged; also where it
// has begun less than a start-up before that.
func (Rule) Merge(c *overlap.Costs) overlap.Plan {
	ready, kib := c.Ready(), make([]int64, len(c.Layers))
	for l := range kib {
		kib[l] = c.Layers[l].ParamKiB
	}
	var sizes []int32
	size, free := int32(1), unit.Duration(0) // of the message at hand, and when the channel is free for it
	for l := len(c.Layers) - 1; l > 0; l-- {
		begins := max(free, ready[l])
		ends, before := begins+c.Takes(kib[l]), ready[l-1]
		if before < ends && (before < begins || before-begins < c.Start) {
			kib[l-1] += kib[l]
			size, free = size+1, begins
			continue
		}
		sizes = append(sizes, size)
		size, free = 1, ends
	}
	return overlap.Plan{Sizes: append(sizes, size)}
}

// Merge knows of each first part of the layers, from the last one on, when their messages can
// be there at the soonest: the last of these goes when it is ready and those before it are
// there.
func (Optimal) Merge(c *overlap.Costs) overlap.Plan {
	n, ready := len(c.Layers), c.Ready()
	soonest, size := make([]unit.Duration, n+1), make([]int32, n+1) // by the first layer that is in
	for first := n - 1; first >= 0; first-- {
		soonest[first] = unit.Forever
		kib := int64(0)
		for end := first + 1; end <= n; end++ { // the message has layers first to end-1
			kib += c.Layers[end-1].ParamKiB
			if there := max(soonest[end], ready[first]) + c.Takes(kib); there < soonest[first] {
				soonest[first], size[first] = there, int32(end-first)
			}
		}
	}
	var sizes []int32
	for first := 0; first < n; first += int(size[first]) {
		sizes = append(sizes, size[first])
	}
	slices.Reverse(sizes)
	return overlap.Plan{Sizes: sizes}
}
