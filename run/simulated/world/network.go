package world

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/flow/circle"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// mostPhased is how many periodic runs are played against each other; more of them are
// taken for steady streams, whose collisions even out.
const mostPhased = 6

// net is the scratch of sharing links.
type net struct {
	capacity []float64 // Mbps by link; infinite is no limit
	whole    []float64 // the same where nothing is down or slow
	filler   maxmin.Filler
	memory   circle.Memory
	flows    []maxmin.Flow
	rates    []float64
	part     []float64 // of a run that goes by a plan, beside the others and alone
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
		if x := &w.runs[r]; len(x.demand) > 0 && !w.away(x) {
			phased = phased && x.shares == nil // what a plan hides is in its shares
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
		if x := &w.runs[component[n.sending[k]]]; x.shares != nil {
			continue
		}
		if wants := n.flows[k].Limit; got < wants*(1-1e-9) {
			rates[n.sending[k]] *= got / wants
		}
	}
	w.plannedRates(component, rates)
}

// plannedRates slows runs that go by a plan down by what it says of its step with the part of the links that
// it could have whenever it sends: what is left by the others, which send what they do on the average, and no
// less than its fair part. It is measured by what it has alone on sound links, where racks may give less than nodes could send.
func (w *World) plannedRates(component []plan.RunID, rates []float64) {
	n := &w.net
	for k, i := range n.sending {
		x := &w.runs[component[i]]
		if x.shares == nil {
			continue
		}
		average := n.flows[k].Limit
		n.flows[k].Limit = 1
		n.part = n.filler.Fill(n.capacity, n.flows, n.part)
		now := n.part[k]
		n.part = n.filler.Fill(n.whole, n.flows[k:k+1], n.part)
		alone := n.part[0]
		if n.flows[k].Limit = average; now >= alone*(1-1e-9) {
			continue // nobody is in its way
		}
		if now <= 0 {
			rates[i] = 0
			continue
		}
		rates[i] *= float64(workload.StepAt(x.shares, alone)) / float64(workload.StepAt(x.shares, now))
	}
}

// average is how much of the time a run sends at full speed.
func (x *run) average() float64 {
	if x.shares != nil {
		return x.sends
	}
	if x.phase[1] == 0 {
		return 1
	}
	return float64(x.phase[1]) / float64(x.phase[0]+x.phase[1])
}

// setCapacity notes what a link carries at this moment.
func (w *World) setCapacity(id int32) {
	c := float64(w.c.LinkBandwidth(id))
	switch {
	case c == 0:
		c = math.Inf(1)
	case w.config.LinkJitter > 0:
		r := rand.New(rand.NewPCG(w.config.Seed, 1<<41+uint64(id)))
		c *= math.Exp(-w.config.LinkJitter * math.Abs(r.NormFloat64()))
	}
	w.net.whole[id], w.net.capacity[id] = c, c/cmp.Or(w.slow.links[id], 1)
	if w.links[id].down {
		w.net.capacity[id] = 0
	}
}

// SetLink takes a link down or brings it back, and returns the runs whose end moved.
func (w *World) SetLink(now unit.Time, id int32, down bool) []plan.RunID {
	w.links[id].down = down
	w.setCapacity(id)
	return w.onLink(now, id)
}

// onLink sees to those who send over a link that has changed.
func (w *World) onLink(now unit.Time, id int32) []plan.RunID {
	if len(w.links[id].runs) == 0 {
		return nil
	}
	return slices.Clone(w.rerate(now, w.links[id].runs[0]))
}
