package tiers_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/philly/tiers"
)

func free(devices ...int32) []allocatetest.Part {
	parts := make([]allocatetest.Part, len(devices))
	for i, d := range devices {
		parts[i].Devices = d
	}
	return parts
}

// Nodes of four devices, two of them in a rack.
func TestTiers(t *testing.T) {
	for _, test := range []struct {
		name  string
		gang  int32
		worst tiers.Tier
		free  []int32
		ok    bool
		is    tiers.Tier
		nodes int
	}{
		{"one node", 4, tiers.Near, []int32{2, 2, 4, 0}, true, tiers.Near, 1},
		{"a node could hold it and none does", 4, tiers.Near, []int32{2, 2, 3, 0}, false, 0, 0},
		{"one rack will do", 4, tiers.Rack, []int32{2, 2, 3, 0}, true, tiers.Rack, 2},
		{"only two racks have room", 4, tiers.Rack, []int32{2, 0, 2, 0}, false, 0, 0},
		{"any nodes will do", 4, tiers.Any, []int32{2, 0, 2, 0}, true, tiers.Any, 2},
		{"two nodes of a rack are the nearest eight have", 8, tiers.Rack, []int32{4, 0, 4, 3}, false, 0, 0},
		{"and there they are", 8, tiers.Near, []int32{0, 0, 4, 4}, true, tiers.Near, 2},
		{"no rack holds twelve: any three nodes are the nearest", 12, tiers.Near, []int32{4, 4, 4, 0}, true, tiers.Near, 3},
		{"a rack with more nodes before two racks with fewer", 5, tiers.Any, []int32{3, 2, 4, 0}, true, tiers.Near, 2},
		{"no room", 12, tiers.Any, []int32{4, 4, 3, 0}, false, 0, 0},
	} {
		s := allocatetest.Cluster(t, 4, 2, free(test.free...)...)
		shape := allocatetest.Gang(test.gang)
		var search tiers.Search
		p, is, ok := search.Place(s.View(), allocate.Need{Workers: test.gang, Shape: &shape}, test.worst, nil, nil)
		if ok != test.ok || ok && (is != test.is || p.Nodes != test.nodes) {
			t.Errorf("%s: %v, tier %d on %d nodes, want %v, tier %d on %d", test.name, ok, is, p.Nodes, test.ok, test.is, test.nodes)
		}
	}
}

// Whatever is free, a placement is of the tier that it is said to be, none is found where
// a brute-force look over nodes and racks finds none, and a worse tier never has less.
func TestTiersByDefinition(t *testing.T) {
	draws.Check(t, func(rt *rapid.T) {
		var left []int32
		for range rapid.IntRange(1, 8).Draw(rt, "nodes") {
			left = append(left, rapid.Int32Range(0, 4).Draw(rt, "free"))
		}
		rack := rapid.IntRange(1, 4).Draw(rt, "rack")
		s := allocatetest.Cluster(t, 4, rack, free(left...)...)
		shape := allocatetest.Gang(rapid.Int32Range(1, 12).Draw(rt, "gang"))
		best := define(left, rack, int(shape.Gang))
		var search tiers.Search
		for worst := tiers.Near; worst <= tiers.Any; worst++ {
			p, is, ok := search.Place(s.View(), allocate.Need{Workers: shape.Gang, Shape: &shape}, worst, nil, nil)
			if ok != (best <= worst) || ok && is != best {
				rt.Fatalf("%v free, racks of %d, gang of %d, at worst %d: %v, tier %d, want %d", left, rack, shape.Gang, worst, ok, is, best)
			}
			if ok && (fit.Nodes(p.Slots) != p.Nodes || workers(p.Slots) != shape.Gang) {
				rt.Fatalf("%d workers on %d nodes: %+v", workers(p.Slots), p.Nodes, p.Slots)
			}
		}
	})
}

func workers(slots []plan.Slot) (n int32) {
	for _, s := range slots {
		n += s.Workers
	}
	return n
}

// define is the best tier that free devices allow, by trying every set of nodes; beyond
// Any where nothing does.
func define(left []int32, rack, gang int) tiers.Tier {
	nodes := len(left)
	full := make([]int32, nodes)
	for i := range full {
		full[i] = 4
	}
	least, together := fewest(full, rack, gang)
	has, inRack := fewest(left, rack, gang)
	switch {
	case has > nodes:
		return tiers.Any + 1
	case together <= least && inRack <= least, together > least && has <= least: // no rack holds it at all
		return tiers.Near
	case inRack <= nodes:
		return tiers.Rack
	}
	return tiers.Any
}

// fewest is how many nodes a gang takes at least, at all and in one rack; more than there
// are where it does not fit.
func fewest(left []int32, rack, gang int) (all, inRack int) {
	all, inRack = len(left)+1, len(left)+1
	for set := range 1 << len(left) {
		sum, count, first, last := 0, 0, -1, -1
		for i := range left {
			if set>>i&1 == 0 {
				continue
			}
			if sum += int(left[i]); first < 0 {
				first = i / rack
			}
			count, last = count+1, i/rack
		}
		if sum < gang {
			continue
		}
		if all = min(all, count); first == last {
			inRack = min(inRack, count)
		}
	}
	return all, inRack
}
