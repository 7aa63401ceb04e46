package mig

import (
	"math/rand/v2"

	"github.com/musterdl/muster/allocate/envelope"
)

// The stream: requests for 1g, 2g and 3g alike, at 90 % of the memory slices of eight
// A100s, exponential gaps and holding times, rejected where there is no room.
const (
	devices  = 8
	load     = .9
	requests = 20000
)

// Measure sends one stream of requests to first fit and to the gradient.
func Measure(seed uint64) map[string]float64 {
	first := reject(seed, requests, func(t *envelope.Table, free []envelope.Slots, profile int, _ []int64) (int, int, bool) {
		for d := range free {
			for _, start := range t.Profiles[profile].Starts {
				if s := t.Slots(envelope.Instance{Profile: profile, Start: start}); s&free[d] == s {
					return d, start, true
				}
			}
		}
		return 0, 0, false
	})
	gradient := reject(seed, requests, byGradient)
	return map[string]float64{"first_fit_rejected_pct": first, "gradient_rejected_pct": gradient}
}

// byGradient is the device and the start that lose least.
func byGradient(t *envelope.Table, free []envelope.Slots, profile int, weights []int64) (device, start int, ok bool) {
	best, found := spot{}, false
	for d := range free {
		if start, loss, ok := t.Best(profile, free[d], weights); ok {
			if s := (spot{device: d, part: start, loss: loss, free: free[d]}); !found || s.better(&best) {
				best, found = s, true
			}
		}
	}
	return best.device, best.part, found
}

// reject returns the percent of the requests that a way of choosing has no room for.
func reject(seed uint64, requests int, choose func(*envelope.Table, []envelope.Slots, int, []int64) (device, start int, ok bool)) float64 {
	table, _ := envelope.MIG("A100", 0)
	mix := []int{0, 2, 3} // 1g, 2g and 3g
	free, weights, slices := make([]envelope.Slots, devices), make([]int64, len(table.Profiles)), 0.0
	for _, p := range mix {
		slices += float64(table.Profiles[p].Memory) / float64(len(mix))
	}
	for d := range free {
		free[d] = table.All()
	}
	type held struct {
		until  float64
		device int
		slots  envelope.Slots
	}
	var holds []held
	dice := rand.New(rand.NewPCG(seed, 0))
	rejected, now := 0, 0.0
	for range requests {
		now += dice.ExpFloat64() * slices / (load * devices * float64(table.Slices))
		profile, until := mix[dice.IntN(len(mix))], now+dice.ExpFloat64()
		kept := holds[:0]
		for _, h := range holds {
			if h.until <= now {
				free[h.device] |= h.slots
			} else {
				kept = append(kept, h)
			}
		}
		holds = kept
		weights[profile] += int64(table.Profiles[profile].Memory)
		device, start, ok := choose(table, free, profile, weights)
		if !ok {
			rejected++
			continue
		}
		s := table.Slots(envelope.Instance{Profile: profile, Start: start})
		free[device] &^= s
		holds = append(holds, held{until, device, s})
	}
	return 100 * float64(rejected) / float64(requests)
}
