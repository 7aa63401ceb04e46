// Package switching is the mechanism that prices handing a device from one job to
// another: what has to be saved, what has to be brought, over which links, and how
// much of that hides behind the newcomer's first pass over its layers.
//
// Layers are moved in groups, and a group computes once it has arrived. Small groups
// begin early, large ones pay the fixed cost of a transfer and of a hand-over less
// often. The best grouping is found exactly: over the layers so far it keeps every
// (arrival, finish) that no other one is better than in both (a Pareto set), since
// which of them wins depends on the layers still to come.
//
// After PipeSwitch (Bai et al., OSDI 2020), which prunes a recursion instead; with
// two links in a row the same recurrence is DistMind's (ToN 2024).
package switching

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Layer is one layer in order of use: its parameters, and how long it computes.
type Layer struct {
	Bytes   int64
	Compute unit.Duration
}

// Link is one hop: a transfer takes Fixed plus its bytes over the bandwidth.
type Link struct {
	Fixed       unit.Duration
	BytesPerSec float64
}

// Time is how long bytes take over a link.
func (l Link) Time(bytes int64) unit.Duration { return round(l.micros(bytes)) }

func (l Link) micros(bytes int64) float64 { return float64(l.Fixed) + 1e6*float64(bytes)/l.BytesPerSec }

func round(micros float64) unit.Duration { return unit.Duration(math.Ceil(micros - 1e-6)) }

// Path is the hops from where the parameters lie to the device, at most two, and
// what handing a group over to compute takes.
type Path struct {
	Links []Link
	Sync  unit.Duration
}

// Grouping is where groups of layers end, and when the last of them has computed.
type Grouping struct {
	Ends   []int
	Finish unit.Duration
}

// instants are when each hop is done with what was moved, and compute with it; what
// the path does not have stays zero.
type instants [3]float64

// next are the instants after one more group.
func (p Path) next(at instants, bytes int64, compute unit.Duration) instants {
	arrived := 0.0
	for i, l := range p.Links {
		at[i] = max(at[i], arrived) + l.micros(bytes)
		arrived = at[i]
	}
	at[2] = max(at[2], arrived) + float64(p.Sync+compute)
	return at
}

// Finish is when the last group of a given grouping has computed.
func (p Path) Finish(layers []Layer, ends []int) unit.Duration {
	var at instants
	begin := 0
	for _, end := range ends {
		bytes, compute := sum(layers[begin:end])
		at, begin = p.next(at, bytes, compute), end
	}
	return round(at[2])
}

func sum(layers []Layer) (bytes int64, compute unit.Duration) {
	for _, l := range layers {
		bytes, compute = bytes+l.Bytes, compute+l.Compute
	}
	return bytes, compute
}

// Whole is all layers in one group, and Single every layer in one of its own.
func Whole(layers []Layer) []int { return []int{len(layers)} }

// Single is every layer in a group of its own.
func Single(layers []Layer) []int {
	ends := make([]int, len(layers))
	for i := range ends {
		ends[i] = i + 1
	}
	return ends
}

// state is one way to have moved the layers so far: when, and the state before.
type state struct {
	at     instants
	end    int // of its last group
	before int // position of the state before, or -1
}

// Group returns the grouping that finishes first; of equals the one with the fewest,
// earliest groups.
func (p Path) Group(layers []Layer) Grouping {
	if len(layers) == 0 {
		return Grouping{}
	}
	limit := p.limit(layers)
	bytes, compute := sum(layers)
	states := []state{{before: -1}}
	ends := [][]int{{0}} // by prefix: its states that none dominates
	var moved int64
	var computed unit.Duration
	for end := 1; end <= len(layers); end++ {
		moved, computed = moved+layers[end-1].Bytes, computed+layers[end-1].Compute
		var front []state
		var b int64
		var c unit.Duration
		for begin := end - 1; begin >= 0; begin-- {
			b, c = b+layers[begin].Bytes, c+layers[begin].Compute
			for _, s := range ends[begin] {
				at := p.next(states[s].at, b, c)
				if p.least(at, bytes-moved, compute-computed, layers[len(layers)-1]) <= limit {
					front = insert(front, state{at, end, s})
				}
			}
		}
		var kept []int
		for _, s := range front {
			kept = append(kept, len(states))
			states = append(states, s)
		}
		ends = append(ends, kept)
	}
	return trace(states, ends[len(layers)])
}

// limit is an end that some grouping is known to make: groups of about as many bytes
// each, in several sizes.
func (p Path) limit(layers []Layer) float64 {
	bytes, _ := sum(layers)
	best := min(p.Finish(layers, Whole(layers)), p.Finish(layers, Single(layers)))
	for most := bytes / 2; most > 0; most /= 2 {
		var ends []int
		held := int64(0)
		for i, l := range layers {
			if held += l.Bytes; held >= most || i == len(layers)-1 {
				ends, held = append(ends, i+1), 0
			}
		}
		best = min(best, p.Finish(layers, ends))
	}
	return float64(best) + 1
}

// least is the earliest that the rest can be done, however it is grouped: what is
// left goes over each hop, then at least the last layer over those behind it.
func (p Path) least(at instants, bytes int64, compute unit.Duration, last Layer) float64 {
	if compute == 0 && bytes == 0 {
		return at[2]
	}
	tail := float64(p.Sync + last.Compute)
	least := at[2] + float64(p.Sync+compute)
	for i := len(p.Links) - 1; i >= 0; i-- {
		least = max(least, at[i]+p.Links[i].micros(bytes)+tail)
		tail += p.Links[i].micros(last.Bytes)
	}
	return least
}

// insert adds a state unless another is as good in everything, and drops those that
// it is as good as.
func insert(front []state, s state) []state {
	for i := range front {
		if noLater(front[i].at, s.at) {
			return front
		}
	}
	front = slices.DeleteFunc(front, func(o state) bool { return noLater(s.at, o.at) })
	return append(front, s)
}

func noLater(a, b instants) bool { return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2] }

// trace returns the groups of the earliest of the last states.
func trace(states []state, last []int) Grouping {
	best := last[0]
	for _, s := range last[1:] {
		if states[s].at[2] < states[best].at[2] {
			best = s
		}
	}
	g := Grouping{Finish: round(states[best].at[2])}
	for s := best; states[s].before >= 0; s = states[s].before {
		g.Ends = append(g.Ends, states[s].end)
	}
	slices.Reverse(g.Ends)
	return g
}

// Persistent is what of a job's memory has to be moved, on each of its devices: what it
// declared, or its parameters, or else all of it.
func Persistent(v plan.View, id plan.JobID) int64 {
	profile, bytes := v.ProfileOf(id), int64(0)
	for _, l := range profile.Layers {
		bytes += l.ParamKiB << 10
	}
	switch {
	case profile.Persistent > 0:
		return int64(profile.Persistent) << 20
	case bytes > 0:
		return bytes
	}
	return int64(v.Shape(id).Memory) << 20
}

// Layers are those of a job's profile, as its first forward pass uses them; without a
// profile it is one block that has to come before anything computes. What stays beside
// the parameters, such as the optimizer's state, comes last: the forward pass does not
// wait for it.
func Layers(v plan.View, id plan.JobID) []Layer {
	var all []Layer
	rest := Persistent(v, id)
	for _, l := range v.ProfileOf(id).Layers {
		all = append(all, Layer{Bytes: l.ParamKiB << 10, Compute: l.Forward})
		rest -= l.ParamKiB << 10
	}
	if rest > 0 {
		all = append(all, Layer{Bytes: rest})
	}
	return all
}

// Overhead is how much later than if they were there already the last of some layers has
// computed that come in given groups.
func (p Path) Overhead(layers []Layer, ends []int) unit.Duration {
	_, compute := sum(layers)
	return p.Finish(layers, ends) - compute
}

// Switch is what handing a device over consists of: telling the one that leaves and
// cleaning up after it, saving what of it has changed, and bringing the newcomer.
type Switch struct {
	Stop unit.Duration
	Save Link
	Path Path
}

// Cost is how long the device does nothing useful when one job gives way to another:
// the changed bytes of the first, and the layers of the second, whose computing
// itself does not count.
func (s Switch) Cost(changed int64, layers []Layer) unit.Duration {
	cost := s.Stop
	if changed > 0 {
		cost += s.Save.Time(changed)
	}
	if len(layers) == 0 {
		return cost
	}
	return cost + s.Path.Overhead(layers, s.Path.Group(layers).Ends)
}
