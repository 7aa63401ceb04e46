// Package links is what the links of a cluster truly carry, who sends over them, and by how
// much that slows whom. It knows no jobs and no devices.
package links

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/flow/circle"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// mostPhased is how many periodic runs are played against each other; more of them are
// taken for steady streams, whose collisions even out.
const mostPhased = 6

// Sender is what a run puts on links.
type Sender struct {
	Demand []maxmin.Use     // while it sends at full speed, only where it crosses any
	Phase  [2]unit.Duration // of one iteration: computing, communicating; 0 is unknown
	Shift  unit.Duration
	Class  int32
	Weight float64
	// Of a run that goes by a planner's plan: how long a step takes with parts of its nodes' uplinks, and what
	// part of an uplink it uses in the mean.
	Shares []workload.Share
	Sends  float64
}

// Net is the links of a cluster.
type Net struct {
	c        *cluster.Cluster
	jitter   float64
	seed     uint64
	finite   bool              // a link has an end
	capacity []float64         // Mbps by link; infinite is no limit
	whole    []float64         // the same where nothing is down or slow
	times    map[int32]float64 // by link: how many times as long it takes as it should
	down     map[int32]bool    // links
	on       [][]plan.RunID    // by link: who sends over it
	scratch
}

// scratch is of one sharing of links.
type scratch struct {
	filler   maxmin.Filler
	memory   circle.Memory
	senders  []*Sender
	places   []int // of the senders among those that are asked about
	flows    []maxmin.Flow
	periodic []circle.Periodic
	shifts   []unit.Duration
	rates    []float64
	part     []float64 // of a run that goes by a plan, beside the others and alone
}

// New returns the links of a cluster, each of which falls short of what is written on it by
// the size of a normal draw of a spread.
func New(c *cluster.Cluster, jitter float64, seed uint64) *Net {
	n := &Net{c: c, jitter: jitter, seed: seed, capacity: make([]float64, c.Links()), whole: make([]float64, c.Links()),
		times: map[int32]float64{}, down: map[int32]bool{}, on: make([][]plan.RunID, c.Links())}
	for i := range n.on {
		n.measure(int32(i))
		n.finite = n.finite || c.LinkBandwidth(int32(i)) > 0
	}
	return n
}

// measure notes what a link carries at this moment.
func (n *Net) measure(link int32) {
	c := float64(n.c.LinkBandwidth(link))
	switch {
	case c == 0:
		c = math.Inf(1)
	case n.jitter > 0:
		r := rand.New(rand.NewPCG(n.seed, 1<<41+uint64(link)))
		c *= math.Exp(-n.jitter * math.Abs(r.NormFloat64()))
	}
	n.whole[link], n.capacity[link] = c, c/cmp.Or(n.times[link], 1)
	if n.down[link] {
		n.capacity[link] = 0
	}
}

// SetDown takes a link down or brings it back.
func (n *Net) SetDown(link int32, down bool) {
	n.down[link] = down
	n.measure(link)
}

// SetSlow has a link take so many times as long as it should.
func (n *Net) SetSlow(link int32, times float64) {
	n.times[link] = times
	n.measure(link)
}

// Finite reports whether any link has an end.
func (n *Net) Finite() bool { return n.finite }

// Capacity is what a link carries now, in Mbps; infinite is no limit.
func (n *Net) Capacity(link int32) float64 { return n.capacity[link] }

// Slowness is how many times as long a link takes as it should.
func (n *Net) Slowness(link int32) float64 { return cmp.Or(n.times[link], 1) }

// Bandwidth is what a link carries now, as clusters tell it: 0 is no limit.
func (n *Net) Bandwidth(link int32) unit.Mbps {
	switch c := n.capacity[link]; {
	case c == 0:
		return n.c.LinkBandwidth(link)
	case math.IsInf(c, 1):
		return 0
	default:
		return max(1, unit.Mbps(c))
	}
}

// Join puts a run on the links that it sends over.
func (n *Net) Join(id plan.RunID, s *Sender) {
	for _, d := range s.Demand {
		n.on[d.Link] = append(n.on[d.Link], id)
	}
}

// Leave takes a run off the links that it sends over.
func (n *Net) Leave(id plan.RunID, s *Sender) {
	for _, d := range s.Demand {
		if i := slices.Index(n.on[d.Link], id); i >= 0 {
			n.on[d.Link] = slices.Delete(n.on[d.Link], i, i+1)
		}
	}
}

// On are the runs that send over a link.
func (n *Net) On(link int32) []plan.RunID { return n.on[link] }

// Begin begins a sharing of links, of which nobody is known yet.
func (n *Net) Begin() {
	s := &n.scratch
	s.senders, s.places, s.flows, s.periodic, s.shifts = s.senders[:0], s.places[:0], s.flows[:0], s.periodic[:0], s.shifts[:0]
}

// Add takes a sender into the sharing, which began at an instant and whose rate has a place
// among those that are then told.
func (n *Net) Add(s *Sender, began unit.Time, place int) {
	shift := s.Shift
	if shift == 0 { // not aligned with anybody: as it happened to begin
		shift = unit.Duration(began) % max(1, s.Phase[0]+s.Phase[1])
	}
	n.senders, n.places = append(n.senders, s), append(n.places, place)
	n.flows = append(n.flows, maxmin.Flow{Uses: s.Demand, Weight: s.Weight, Limit: s.average(), Class: s.Class})
	n.periodic = append(n.periodic, circle.Periodic{Compute: s.Phase[0], Communicate: s.Phase[1], Uses: s.Demand, Weight: s.Weight, Class: s.Class})
	n.shifts = append(n.shifts, shift)
}

// Slow slows those in the sharing down by what links cannot carry: classes in
// strict order, inside a class weighted max-min. A few runs whose phases are known are
// played against each other, shifted as their terms say; else each sends a steady
// stream of what it sends on the average.
func (n *Net) Slow(rates []float64) {
	if len(n.flows) == 0 {
		return
	}
	if n.phased() && len(n.flows) <= mostPhased {
		for k, slower := range n.memory.Steady(n.periodic, n.capacity, n.shifts) {
			rates[n.places[k]] /= slower
		}
		return
	}
	n.rates = n.filler.Fill(n.capacity, n.flows, n.rates)
	for k, got := range n.rates {
		if n.senders[k].Shares != nil {
			continue
		}
		if wants := n.flows[k].Limit; got < wants*(1-1e-9) {
			rates[n.places[k]] *= got / wants
		}
	}
	n.slowPlanned(rates)
}

// phased reports whether all that send do so in phases that are known.
func (n *Net) phased() bool {
	for _, s := range n.senders {
		if s.Shares != nil || s.Phase[1] <= 0 { // what a plan hides is in its shares
			return false
		}
	}
	return true
}

// slowPlanned slows runs that go by a plan down by what it says of its step with the part of the links that
// it could have whenever it sends: what is left by the others, which send what they do on the average, and no
// less than its fair part. It is measured by what it has alone on sound links, where racks may give less than nodes could send.
func (n *Net) slowPlanned(rates []float64) {
	for k, s := range n.senders {
		if s.Shares == nil {
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
			rates[n.places[k]] = 0
			continue
		}
		rates[n.places[k]] *= float64(workload.StepAt(s.Shares, alone)) / float64(workload.StepAt(s.Shares, now))
	}
}

// average is how much of the time a run sends at full speed.
func (s *Sender) average() float64 {
	if s.Shares != nil {
		return s.Sends
	}
	if s.Phase[1] == 0 {
		return 1
	}
	return float64(s.Phase[1]) / float64(s.Phase[0]+s.Phase[1])
}
