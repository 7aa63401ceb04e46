package divide

import (
	"math"

	"github.com/musterdl/muster/mechanism/rank"
)

// Spread lays so many like workers on nodes as evenly as possible on as few as
// possible, the freest first; where no number of nodes takes them evenly, it fills the
// freest ones. It returns the workers by node, nil if there is no room.
func Spread(count int, free []int) []int {
	sum := 0
	for n := range free {
		sum += free[n]
	}
	if sum < count || count <= 0 {
		return nil
	}
	var by rank.Order
	by.Begin(len(free))
	for n := range free {
		by.Keys[n] = math.MaxInt32 - uint64(free[n])
	}
	order := by.Sort()
	on := make([]int, len(free))
	for nodes := 1; nodes <= min(count, len(order)); nodes++ {
		// The last of the prefix is the least free: it decides, with its lower share.
		high, low, extra := (count+nodes-1)/nodes, count/nodes, count%nodes
		if extra == 0 {
			extra = nodes
		}
		if free[order[extra-1]] < high || free[order[nodes-1]] < low {
			continue
		}
		for k, n := range order[:nodes] {
			on[n] = low
			if k < count%nodes {
				on[n]++
			}
		}
		return on
	}
	for _, n := range order {
		on[n] = min(count, free[n])
		count -= on[n]
	}
	return on
}
