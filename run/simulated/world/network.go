package world

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/flow/circle"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// mostPhased is how many periodic runs are played against each other; more of them are
// taken for steady streams, whose collisions even out.
const mostPhased = 6

// net is the scratch of sharing links.
type net struct {
	capacity []float64 // Mbps by link; infinite is no limit
	filler   maxmin.Filler
	memory   circle.Memory
	flows    []maxmin.Flow
	rates    []float64
	periodic []circle.Periodic
	shifts   []unit.Duration
	sending  []int // by place in the component
}

// network slows the runs of a component down by what its links cannot carry: classes in
// strict order, inside a class weighted max-min. A few runs whose phases are known are
// played against each other, shifted as their terms say; else each sends a steady
// stream of what it sends on the average.
func (w *World) network(component []plan.RunID, rates []float64) {
	n := &w.net
	n.sending, n.flows, n.periodic, n.shifts = n.sending[:0], n.flows[:0], n.periodic[:0], n.shifts[:0]
	phased := true
	for i, r := range component {
		if x := &w.runs[r]; len(x.demand) > 0 && !x.paused {
			n.sending = append(n.sending, i)
			n.flows = append(n.flows, maxmin.Flow{Uses: x.demand, Weight: x.weight, Limit: x.average(), Class: x.class})
			n.periodic = append(n.periodic, circle.Periodic{Compute: x.phase[0], Communicate: x.phase[1], Uses: x.demand, Weight: x.weight, Class: x.class})
			shift := x.shift
			if shift == 0 { // not aligned with anybody: as it happened to begin
				shift = unit.Duration(x.began) % max(1, x.phase[0]+x.phase[1])
			}
			n.shifts = append(n.shifts, shift)
			phased = phased && x.phase[1] > 0
		}
	}
	if len(n.flows) == 0 {
		return
	}
	if phased && len(n.flows) <= mostPhased {
		for k, slower := range n.memory.Steady(n.periodic, n.capacity, n.shifts) {
			rates[n.sending[k]] /= slower
		}
		return
	}
	n.rates = n.filler.Fill(n.capacity, n.flows, n.rates)
	for k, got := range n.rates {
		if wants := n.flows[k].Limit; got < wants*(1-1e-9) {
			rates[n.sending[k]] *= got / wants
		}
	}
}

// average is how much of the time a run sends at full speed.
func (x *run) average() float64 {
	if x.phase[1] == 0 {
		return 1
	}
	return float64(x.phase[1]) / float64(x.phase[0]+x.phase[1])
}

// setCapacity notes what a link carries at this moment.
func (w *World) setCapacity(id int32) {
	c := float64(w.c.LinkBandwidth(id))
	switch {
	case w.links[id].down:
		c = 0
	case c == 0:
		c = math.Inf(1)
	case w.config.LinkJitter > 0:
		r := rand.New(rand.NewPCG(w.config.Seed, 1<<41+uint64(id)))
		c *= math.Exp(-w.config.LinkJitter * math.Abs(r.NormFloat64()))
	}
	w.net.capacity[id] = c
}

// SetLink takes a link down or brings it back, and returns the runs whose end moved.
func (w *World) SetLink(now unit.Time, id int32, down bool) []plan.RunID {
	w.links[id].down = down
	w.setCapacity(id)
	if len(w.links[id].runs) == 0 {
		return nil
	}
	return slices.Clone(w.rerate(now, w.links[id].runs[0]))
}
