package divide

import (
	"math"

	"github.com/musterdl/muster/mechanism/rank"
)

// Spreader lays workers on nodes. Its memory is used again.
type Spreader struct {
	by    rank.Order
	nodes []int32 // with room
	on    []int
}

// Spread lays so many like workers on nodes as evenly as possible on as few as
// possible, the freest first; where no number of nodes takes them evenly, it fills the
// freest ones. It returns the workers by node, nil if there is no room. They hold until it is asked again.
func (s *Spreader) Spread(count int, free []int) []int {
	sum := 0
	s.nodes = s.nodes[:0]
	for n, k := range free {
		if k > 0 {
			sum += k
			s.nodes = append(s.nodes, int32(n))
		}
	}
	if sum < count || count <= 0 {
		return nil
	}
	s.by.Begin(len(s.nodes))
	for i, n := range s.nodes {
		s.by.Keys[i] = math.MaxInt32 - uint64(free[n])
	}
	order := s.by.Sort()
	if len(s.on) < len(free) {
		s.on = make([]int, len(free))
	}
	on := s.on[:len(free)]
	clear(on)
	for nodes := 1; nodes <= min(count, len(order)); nodes++ {
		// The last of the prefix is the least free: it decides, with its lower share.
		high, low, extra := (count+nodes-1)/nodes, count/nodes, count%nodes
		if extra == 0 {
			extra = nodes
		}
		if free[s.nodes[order[extra-1]]] < high || free[s.nodes[order[nodes-1]]] < low {
			continue
		}
		for k, i := range order[:nodes] {
			on[s.nodes[i]] = low
			if k < count%nodes {
				on[s.nodes[i]]++
			}
		}
		return on
	}
	for _, i := range order {
		n := s.nodes[i]
		on[n] = min(count, free[n])
		count -= on[n]
	}
	return on
}
