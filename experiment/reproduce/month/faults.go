// Package month has the engine run one large job through a month of failures: nodes that are lost, devices and links
// that are slow, machines that are taken back, racks that fail, all of these, and failures as often as those of Llama 3. The simulated world plays them. After
// each, the composition's part `reaction` says how the job goes on; what is compared is the one that goes by price
// with the same part told to take always one way.
package month

import (
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// cause is something that breaks by chance, one thing at a time.
type cause struct {
	every unit.Duration // between two of one node, or of one rack
	lasts unit.Duration // in the mean
	rack  bool
	// least and most are the speed that is left of one device, or of a node's link; 0 is that
	// the node is away.
	least, most float64
	link        bool
}

// Regime is what breaks in a month.
type Regime struct {
	Name   string
	causes []cause
}

// The causes. How often is ours, but for llama-3: 419 interruptions in 54 days on 16,384 devices
// (Dubey et al. 2024) are one of a node of eight in 264 days.
var (
	lost  = cause{every: 60 * unit.Day, lasts: 12 * unit.Hour}
	slow  = cause{every: 120 * unit.Day, lasts: 12 * unit.Hour, least: .3, most: .95}
	links = cause{every: 120 * unit.Day, lasts: 6 * unit.Hour, least: .02, most: .5, link: true}
	spot  = cause{every: 20 * unit.Day, lasts: 2 * unit.Hour}
	racks = cause{every: 60 * unit.Day, lasts: 3 * unit.Hour, rack: true}
	llama = cause{every: 54 * unit.Day * 2048 / 419, lasts: 24 * unit.Hour}
)

// Regimes are what a study plays.
var Regimes = []Regime{
	{"lost nodes", []cause{lost}},
	{"slow devices", []cause{slow}},
	{"slow links", []cause{links}},
	{"spot", []cause{spot}},
	{"rack outages", []cause{racks}},
	{"mixed", []cause{lost, slow, links, spot, racks}},
	{"llama-3", []cause{llama}},
}

// inRack is how many nodes share a rack.
const inRack = 16

// fault is one that was drawn.
type fault struct {
	at, until unit.Time
	nodes     []int32
	device    int32 // of the node, where one is slow
	cause     *cause
	left      float64 // of the speed
}

// draw has causes happen on nodes, from a seed.
func (r *Regime) draw(nodes int, end unit.Time, seed uint64) (all []fault) {
	dice := rand.New(rand.NewPCG(seed, 30))
	for i := range r.causes {
		c := &r.causes[i]
		places, size := nodes, 1
		if c.rack {
			places, size = (nodes+inRack-1)/inRack, inRack
		}
		for at := unit.Time(0); ; {
			if at = at.Add(unit.Duration(dice.ExpFloat64() * float64(c.every) / float64(places))); at >= end {
				break
			}
			f := fault{at: at, until: at.Add(unit.Duration(dice.ExpFloat64() * float64(c.lasts))), cause: c, device: dice.Int32N(inNode)}
			f.left = c.least + dice.Float64()*(c.most-c.least)
			first := dice.IntN(places) * size
			for n := first; n < min(first+size, nodes); n++ {
				f.nodes = append(f.nodes, int32(n))
			}
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b fault) int { return int(a.at - b.at) })
	return all
}

// stops is the mean time between two of the causes that take nodes away, and lasts the mean time
// until what broke is whole.
func (r *Regime) stops(nodes int) (stops, lasts unit.Duration) {
	away, all, time := 0., 0., 0.
	for _, c := range r.causes {
		rate := float64(nodes) / float64(c.every)
		if c.rack {
			rate /= inRack
		}
		all += rate
		time += rate * float64(c.lasts)
		if c.most == 0 {
			away += rate
		}
	}
	if away == 0 {
		return 30 * unit.Day, unit.Duration(time / all)
	}
	return unit.Duration(1 / away), unit.Duration(time / all)
}
