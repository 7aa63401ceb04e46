package piper

import (
	"cmp"
	"math"
	"slices"
)

// item is one way to run one node: what it takes and what it holds.
type item struct{ time, held float64 }

// mostMixtures bounds the front of a knapsack: up to so many mixtures it is exact, beyond it
// every other one is left out.
const mostMixtures = 1024

// mixture is a choice for the first nodes, none of which is worse than another in both. It is
// the mixture `from` of the nodes before, with way `way` of its own node.
type mixture struct {
	item
	from, way int32
}

// pack is the knapsack of a stage. It chooses a way for each node so that all fit the memory and the sum of times is least. It
// returns Inf where nothing fits; the choice only where it is asked for.
func pack(nodes [][]item, memory float64, choice []int) float64 {
	fastest, leanest := item{}, 0.0
	// First what needs no search: all nodes the fastest, or even the leanest too large.
	for i, ways := range nodes {
		best, lean := 0, 0
		for w, it := range ways {
			if it.time < ways[best].time || it.time == ways[best].time && it.held < ways[best].held {
				best = w
			}
			if it.held < ways[lean].held {
				lean = w
			}
		}
		fastest.time, fastest.held = fastest.time+ways[best].time, fastest.held+ways[best].held
		leanest += ways[lean].held
		if choice != nil {
			choice[i] = best
		}
	}
	switch {
	case memory == 0 || fastest.held <= memory:
		return fastest.time
	case leanest > memory:
		return math.Inf(1)
	}
	// Neither the fastest fit nor is there no hope: mixtures have to be looked at. A mixture that
	// leaves too little for the leanest ways of the nodes to come is none.
	fronts := make([][]mixture, len(nodes)+1)
	fronts[0] = []mixture{{}}
	for i, ways := range nodes {
		least := slices.MinFunc(ways, func(a, b item) int { return cmp.Compare(a.held, b.held) }).held
		leanest -= least // of the nodes to come
		fronts[i+1] = extend(fronts[i], ways, memory-max(0, leanest))
		if len(fronts[i+1]) == 0 {
			return math.Inf(1)
		}
	}
	// The fastest of those that are left fits, and its way back tells the choice.
	last := fronts[len(nodes)]
	for i, at := len(nodes), int32(0); i > 0 && choice != nil; i-- {
		choice[i-1], at = int(fronts[i][at].way), fronts[i][at].from
	}
	return last[0].time
}

// extend is the front with one more node, the fastest first. Of like nodes, as a transformer has
// them, mixtures with as many of each way fall together, and a front stays as long as the nodes
// are many.
func extend(front []mixture, ways []item, memory float64) []mixture {
	all := make([]mixture, 0, len(front)*len(ways))
	for f, m := range front {
		for w, it := range ways {
			if held := m.held + it.held; held <= memory {
				all = append(all, mixture{item{m.time + it.time, held}, int32(f), int32(w)})
			}
		}
	}
	slices.SortFunc(all, func(a, b mixture) int {
		switch { // which is most of what a search takes
		case a.time < b.time:
			return -1
		case a.time > b.time:
			return 1
		case a.held != b.held:
			return cmp.Compare(a.held, b.held)
		}
		return cmp.Or(int(a.from-b.from), int(a.way-b.way))
	})
	// Of those that take longer, only what holds less than all before it is of use.
	kept := all[:0]
	for _, m := range all {
		if len(kept) == 0 || m.held < kept[len(kept)-1].held {
			kept = append(kept, m)
		}
	}
	for len(kept) > mostMixtures {
		thin := kept[:0]
		for i := range kept {
			if i%2 == 0 || i == len(kept)-1 { // the leanest stays
				thin = append(thin, kept[i])
			}
		}
		kept = thin
	}
	return kept
}
