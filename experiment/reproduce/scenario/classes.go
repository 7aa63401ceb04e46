// Package scenario runs whole days through all six steps: one mixed workload, one
// cluster, every step at work or at its null, so that what a step is worth is a
// difference of two runs of the same day.
//
// What is measured and what is made up is said where it is used: rates and pairs are
// Gavel's measurements, arrivals, sizes and run times those of Helios' Venus, request
// rates those of ServeGen, failures those of Acme's Seren.
package scenario

import (
	"math"
	"math/rand/v2"
	"sync"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated/world/speed"
)

// models are those of the cluster, reference first.
var models = [...]string{"v100", "p100", "k80"}

// class is a family of training jobs with what was measured of it.
type class struct {
	name string
	// spread is how much slower 8 workers are on separate nodes than on one.
	spread float64
	scales bool // rates of 2, 4 and 8 workers were measured
}

// classes are Gavel's, in order of their names.
func classes() (all []class) {
	for _, name := range speed.Classes() {
		if _, ok := speed.Rate(name, "v100", 1, 1); !ok {
			continue
		}
		c := class{name: name, spread: 1}
		together, ok1 := speed.Rate(name, "v100", 8, 1)
		apart, ok2 := speed.Rate(name, "v100", 8, 8)
		if ok1 && ok2 {
			c.scales, c.spread = true, max(1, together/apart)
		}
		all = append(all, c)
	}
	return all
}

// menu lists the measured rates of a class around a gang: on every model, on one node
// and on several, relative to the gang on the fewest nodes of the reference. Nothing
// for gangs larger than what was measured.
func (c class) menu(gang int32) (offers []workload.Offer) {
	ref, ok := speed.Rate(c.name, "v100", int(gang), 1)
	if !ok || gang > 8 {
		return nil
	}
	for _, model := range models {
		for _, n := range [...]int32{1, 2, 4, 8} {
			if rate, ok := speed.Rate(c.name, model, int(n), 1); ok && (n == 1 || c.scales) {
				offers = append(offers, workload.Offer{Model: model, Workers: n, Nodes: 1, Rate: rate / ref})
			}
			if rate, ok := speed.Rate(c.name, model, int(n), int(n)); ok && n > 1 && c.scales {
				offers = append(offers, workload.Offer{Model: model, Workers: n, Nodes: 2, Rate: rate / ref})
			}
		}
	}
	return offers
}

// busy draws the part of its devices that a job keeps busy: as was measured over all of
// Philly's jobs and minutes (util_gpu_philly of AcmeTrace, CC BY 4.0), whose mean is
// 47 %. The deciles of that curve, with a straight line between them.
func busy(r *rand.Rand) float64 {
	deciles := [...]float64{0, 0, 0, 0, 0.222, 0.483, 0.692, 0.872, 0.964, 0.993, 1}
	x := r.Float64() * 10
	k := min(9, int(x))
	return max(0.01, deciles[k]+(x-float64(k))*(deciles[k+1]-deciles[k]))
}

// traffic is what each of n workers sends at full speed: the part of its time that a
// worker on a node of its own communicates, as measured, of the 25 Gbps it then had.
// A ring passes a node once, however many workers are on it.
func (c class) traffic(n int32) unit.Mbps {
	if n < 2 {
		return 0
	}
	return unit.Mbps((1 - 1/c.spread) * 25_000 / float64(min(n, 8)))
}

// runsOn lists the models that n workers of a class were measured on, on one node and on
// several; on others their memory does not do.
func (c class) runsOn(n int32) (names []string) {
	n = min(n, 8)
	for n > 1 && n&(n-1) != 0 {
		n &= n - 1 // the measured size below
	}
	for _, model := range models {
		together, ok := speed.Rate(c.name, model, int(n), 1)
		apart, okApart := speed.Rate(c.name, model, int(n), int(n))
		if ok && together > 0 && (n == 1 || okApart && apart > 0) {
			names = append(names, model)
		}
	}
	return names
}

// sensitivity is the slowdown per doubling of nodes, for gangs that no menu holds.
func (c class) sensitivity() float64 { return (c.spread - 1) / math.Log2(8) }

// measured says which pairs of classes were measured; package world asks it.
type measured struct{}

// Rate is left to the jobs' menus.
func (measured) Rate(string, string, int, int) (float64, bool) { return 0, false }

// Pair is what two classes keep of their rates on one device.
func (measured) Pair(a, b, model string) (keepsA, keepsB float64, known bool) {
	keeps, known := pairs()[[3]string{a, b, model}]
	return keeps[0], keeps[1], known
}

// pairs are what the classes keep, by class, the other's class and the model.
var pairs = sync.OnceValue(func() map[[3]string][2]float64 {
	all := map[[3]string][2]float64{}
	for _, model := range models {
		for _, a := range speed.Classes() {
			for _, b := range speed.Classes() {
				rateA, rateB, ok := speed.Pair(a, b, model)
				aloneA, okA := speed.Rate(a, model, 1, 1)
				aloneB, okB := speed.Rate(b, model, 1, 1)
				if ok && okA && okB && rateA != 0 {
					all[[3]string{a, b, model}] = [2]float64{rateA / aloneA, rateB / aloneB}
				}
			}
		}
	}
	return all
})
