package gandiva

import (
	"iter"
	"math/bits"
	"slices"
)

// ranks are the nodes in the order in which places are looked for: by what is on them, then by height, then
// as they are numbered. Nodes of one class and height are a set, and so are those with so much room.
type ranks struct {
	kept    bool    // they are, from the first search on
	nodes   int32   // that there are
	heights []int32 // that nodes have had, in order
	classes map[rank]nodes
	largest int32
	open    []nodes // by most and devices of a room
	unused  []nodes // of the decisions before
}

// nodes is a set of them, 64 to a word, and which words are not empty, 64 to a word again.
type nodes struct{ low, high []uint64 }

func (s nodes) add(n int32) {
	s.low[n>>6] |= 1 << (n & 63)
	s.high[n>>12] |= 1 << (n >> 6 & 63)
}

func (s nodes) remove(n int32) {
	if s.low[n>>6] &^= 1 << (n & 63); s.low[n>>6] == 0 {
		s.high[n>>12] &^= 1 << (n >> 6 & 63)
	}
}

// rank is a class of nodes, or any, and a height.
type rank struct{ class, height int32 }

const anyClass = -1

// room is so many devices with fewer residents than most.
type room struct{ most, devices int32 }

func newRanks() ranks { return ranks{classes: map[rank]nodes{}} }

// forget empties all sets and keeps their memory.
func (r *ranks) forget() {
	for _, set := range r.classes {
		r.unused = append(r.unused, set)
	}
	clear(r.classes)
	r.unused = append(r.unused, r.open...)
	r.kept, r.heights, r.open = false, r.heights[:0], r.open[:0]
}

// begin is for so many nodes of at most so many devices, in no set yet, and room for up to so many residents.
func (r *ranks) begin(n, largest, most int32) {
	if r.kept, r.largest = true, largest; r.nodes != n {
		r.nodes, r.unused = n, nil
	}
	for range (most + 1) * (largest + 1) {
		r.open = append(r.open, r.empty())
	}
}

// empty returns an empty set.
func (r *ranks) empty() nodes {
	n := len(r.unused)
	if n == 0 {
		return nodes{make([]uint64, r.nodes>>6+1), make([]uint64, r.nodes>>12+1)}
	}
	set := r.unused[n-1]
	r.unused = r.unused[:n-1]
	clear(set.low)
	clear(set.high)
	return set
}

// add takes a node in that has a class and a height.
func (r *ranks) add(n int32, at rank) {
	for _, k := range []rank{at, {anyClass, at.height}} {
		set, found := r.classes[k]
		if !found {
			set = r.empty()
			r.classes[k] = set
			if i, known := slices.BinarySearch(r.heights, k.height); !known {
				r.heights = slices.Insert(r.heights, i, k.height)
			}
		}
		set.add(n)
	}
}

// remove takes it out again.
func (r *ranks) remove(n int32, at rank) {
	r.classes[at].remove(n)
	r.classes[rank{anyClass, at.height}].remove(n)
}

// with are the nodes that have so much room.
func (r *ranks) with(x room) nodes { return r.open[x.most*(r.largest+1)+x.devices] }

// none reports whether no node has so much room.
func (r *ranks) none(x room) bool {
	return !slices.ContainsFunc(r.with(x).high, func(word uint64) bool { return word != 0 })
}

// inOrder are the nodes with so much room: those of a class, those without one and all others.
func (r *ranks) inOrder(class int32, x room) iter.Seq[int32] {
	return func(yield func(node int32) bool) {
		for _, of := range []int32{class, 0, anyClass} {
			for _, height := range r.heights {
				var but [2]nodes
				if of == anyClass {
					but = [2]nodes{r.classes[rank{class, height}], r.classes[rank{0, height}]}
				}
				if !both(r.classes[rank{of, height}], r.with(x), but, yield) {
					return
				}
			}
		}
	}
}

// both yields the nodes that are in two sets and in no others, and reports whether it was let go on.
func both(a, b nodes, but [2]nodes, yield func(node int32) bool) bool {
	for h := range min(len(a.high), len(b.high)) {
		for words := a.high[h] & b.high[h]; words != 0; words &= words - 1 {
			w := h<<6 + bits.TrailingZeros64(words)
			word := a.low[w] & b.low[w]
			for _, others := range but {
				if others.low != nil {
					word &^= others.low[w]
				}
			}
			for ; word != 0; word &= word - 1 {
				if !yield(int32(w<<6 + bits.TrailingZeros64(word))) {
					return false
				}
			}
		}
	}
	return true
}
