package gandiva

import (
	"iter"
	"slices"

	"github.com/musterdl/muster/model/bitset"
)

// ranks are the nodes in the order in which places are looked for: by what is on them, then by height, then
// as they are numbered. Nodes of one class and height are a set, and so are those with so much room.
type ranks struct {
	kept    bool    // they are, from the first search on
	nodes   int32   // that there are
	heights []int32 // that nodes have had, in order
	classes map[rank]*bitset.Set
	largest int32
	open    []*bitset.Set // by most and devices of a room
	unused  []*bitset.Set // of the decisions before
}

// rank is a class of nodes, or any, and a height.
type rank struct{ class, height int32 }

const anyClass = -1

// room is so many devices with fewer residents than most.
type room struct{ most, devices int32 }

func newRanks() ranks { return ranks{classes: map[rank]*bitset.Set{}} }

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
func (r *ranks) empty() *bitset.Set {
	n := len(r.unused)
	if n == 0 {
		set := bitset.New(int(r.nodes))
		return &set
	}
	set := r.unused[n-1]
	r.unused = r.unused[:n-1]
	set.Clear()
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
		set.Add(n)
	}
}

// remove takes it out again.
func (r *ranks) remove(n int32, at rank) {
	r.classes[at].Remove(n)
	r.classes[rank{anyClass, at.height}].Remove(n)
}

// with are the nodes that have so much room.
func (r *ranks) with(x room) *bitset.Set { return r.open[x.most*(r.largest+1)+x.devices] }

// none reports whether no node has so much room.
func (r *ranks) none(x room) bool {
	return r.with(x).Empty()
}

// inOrder are the nodes with so much room: those of a class, those without one and all others.
func (r *ranks) inOrder(class int32, x room) iter.Seq[int32] {
	return func(yield func(node int32) bool) {
		for _, of := range []int32{class, 0, anyClass} {
			for _, height := range r.heights {
				set, others := r.classes[rank{of, height}], []*bitset.Set(nil)
				if set == nil {
					continue
				}
				if of == anyClass {
					others = []*bitset.Set{r.ofClass(class, height), r.ofClass(0, height)}
				}
				for node := range bitset.Common(set, r.with(x), others...) {
					if !yield(node) {
						return
					}
				}
			}
		}
	}
}

// ofClass are the nodes of a class and a height.
func (r *ranks) ofClass(class, height int32) *bitset.Set {
	if set := r.classes[rank{class, height}]; set != nil {
		return set
	}
	return &bitset.Set{}
}
