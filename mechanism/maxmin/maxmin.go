// Package maxmin shares links out: the weighted max-min rates of flows over links of
// limited capacity, classes in strict order, by progressive filling. What the flows
// are (runs over uplinks, transfers between ranks, phases of iterations) and who gets
// which weight is the caller's affair.
package maxmin

import (
	"cmp"
	"math"
	"slices"
)

// Use is what one unit of a flow's rate takes of a link.
type Use struct {
	Link int32
	Per  float64
}

// Flow is traffic whose rate is one number on all links it uses.
type Flow struct {
	Uses   []Use
	Weight float64 // in its class; 0 counts as 1
	Limit  float64 // the most rate it takes; 0 is as much as the links give
	Class  int32   // lower classes are served first
}

func (f *Flow) weight() float64 {
	if f.Weight == 0 {
		return 1
	}
	return f.Weight
}

// Fill returns the weighted max-min rates of flows over links of these capacities:
// of the flows of a class, none can get more without another getting less that has
// no more for its weight; lower classes take what they can first. A link of
// capacity 0 carries nothing; a flow that uses no link gets its limit.
func Fill(capacities []float64, flows []Flow) []float64 {
	var f Filler
	return f.Fill(capacities, flows, nil)
}

// Filler is Fill with buffers that are used again. Its cost follows the uses of the
// flows (times a logarithm), not the number of links there are.
type Filler struct {
	links   []link    // by id; what is not touched is stale
	touched []int32   // links that the flows of this call use
	order   []ordered // the flows: by class, then by the level that meets them
	on      []int32   // the flows of each link of a class, side by side
	heap    []int32   // the links of a class, the first to fill up on top
}

// link is the state of a link while it fills. At a level x every open flow has x
// times its weight, so that the link is full at level free/load.
type link struct {
	free       float64 // capacity less what fixed flows take
	load       float64 // what the open flows of the class take per unit of level
	level      float64 // a lower bound of the level at which it is full
	first, end int32   // its flows of the class, in on
	open       int32   // how many of them are not fixed
}

type ordered struct {
	class, flow int32
	level       float64 // at which the flow has its limit
}

// unset marks the rate of a flow that has none yet.
const unset = -1

// Fill is as the function of this name; the rates are written over into.
func (f *Filler) Fill(capacities []float64, flows []Flow, into []float64) []float64 {
	f.begin(capacities, flows)
	rates := slices.Grow(into[:0], len(flows))[:len(flows)]
	for i := range rates {
		rates[i] = unset
	}
	for i := 0; i < len(f.order); {
		j := i
		for j < len(f.order) && f.order[j].class == f.order[i].class {
			j++
		}
		f.raise(flows, f.order[i:j], rates)
		i = j
	}
	return rates
}

// begin empties the links that are used and puts the flows in order.
func (f *Filler) begin(capacities []float64, flows []Flow) {
	if len(f.links) < len(capacities) {
		f.links = make([]link, len(capacities))
	}
	f.order = f.order[:0]
	for i := range flows {
		x := &flows[i]
		level := math.Inf(1)
		if x.Limit > 0 {
			level = x.Limit / x.weight()
		}
		f.order = append(f.order, ordered{x.Class, int32(i), level})
		for _, u := range x.Uses {
			f.links[u.Link] = link{free: capacities[u.Link]}
		}
	}
	slices.SortFunc(f.order, func(a, b ordered) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.level, b.level), cmp.Compare(a.flow, b.flow))
	})
}

// raise lifts the flows of one class together, each in proportion to its weight,
// and fixes those that have their limit or meet a full link.
func (f *Filler) raise(flows []Flow, class []ordered, rates []float64) {
	f.load(flows, class)
	for next := 0; next < len(class); {
		o := class[next]
		if rates[o.flow] != unset {
			next++
			continue
		}
		l, level := f.fullest()
		if l < 0 || o.level < level {
			f.fix(&flows[o.flow], o.level)
			rates[o.flow] = flows[o.flow].Limit
			if math.IsInf(o.level, 1) {
				rates[o.flow] = o.level
			}
			continue
		}
		x := &f.links[l]
		for _, id := range f.on[x.first:x.end] {
			if rates[id] == unset {
				f.fix(&flows[id], level)
				rates[id] = flows[id].weight() * level
			}
		}
		x.free = 0
	}
}

// load counts the flows of a class on their links and makes the heap.
func (f *Filler) load(flows []Flow, class []ordered) {
	f.touched = f.touched[:0]
	for _, o := range class {
		w := flows[o.flow].weight()
		for _, u := range flows[o.flow].Uses {
			x := &f.links[u.Link]
			if x.open == 0 {
				f.touched, x.load = append(f.touched, u.Link), 0
			}
			x.open++
			x.load += w * u.Per
		}
	}
	at := int32(0)
	for _, l := range f.touched {
		x := &f.links[l]
		x.first, x.end, x.level = at, at, x.full()
		at += x.open
	}
	f.on = slices.Grow(f.on[:0], int(at))[:at]
	for _, o := range class {
		for _, u := range flows[o.flow].Uses {
			x := &f.links[u.Link]
			f.on[x.end] = o.flow
			x.end++
		}
	}
	f.heap = append(f.heap[:0], f.touched...)
	for i := len(f.heap)/2 - 1; i >= 0; i-- {
		f.sift(i)
	}
}

// full is the level at which the link is full.
func (x *link) full() float64 {
	if x.load <= 0 {
		return math.Inf(1)
	}
	return max(0, x.free) / x.load
}

// fix takes what a flow has at a level off its links.
func (f *Filler) fix(flow *Flow, level float64) {
	w := flow.weight()
	for _, u := range flow.Uses {
		x := &f.links[u.Link]
		x.open--
		x.load -= w * u.Per
		if u.Per > 0 {
			x.free = max(0, x.free-w*u.Per*level)
		}
	}
}

// fullest returns the link that fills up first, and at what level. The level of a
// link only rises while its flows are fixed, so a stale one is found on top.
func (f *Filler) fullest() (int32, float64) {
	for len(f.heap) > 0 {
		x := &f.links[f.heap[0]]
		level := x.full()
		switch {
		case x.open == 0:
			last := len(f.heap) - 1
			f.heap[0] = f.heap[last]
			f.heap = f.heap[:last]
		case level > x.level:
			x.level = level
		default:
			return f.heap[0], x.level
		}
		f.sift(0)
	}
	return -1, math.Inf(1)
}

// sift moves a link of the heap down to its place.
func (f *Filler) sift(i int) {
	before := func(a, b int32) bool {
		x, y := f.links[a].level, f.links[b].level
		return x < y || x == y && a < b
	}
	for {
		child := 2*i + 1
		if child >= len(f.heap) {
			return
		}
		if child+1 < len(f.heap) && before(f.heap[child+1], f.heap[child]) {
			child++
		}
		if !before(f.heap[child], f.heap[i]) {
			return
		}
		f.heap[i], f.heap[child] = f.heap[child], f.heap[i]
		i = child
	}
}
