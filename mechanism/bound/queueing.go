package bound

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// The bound that knows queueing puts prices on device time and lets every job buy what suits it
// best, as if it were alone: it may wait for cheap time, stop and go on, and its completion time
// costs it besides. Whatever the prices, if none is negative:
//
//	sum of completion times  >=  sum of what the jobs pay  -  worth of all time there is.
//
// For take any schedule. Let each job pay for the time that it runs there, and its completion
// time. That comes to the sum of completion times and the worth of what was sold. No more was
// sold than there is, and a job that chooses freely pays no more than it does there. So any
// prices give a bound, and how good ones are found is no part of the proof. With all prices
// zero it is the isolated bound.
//
// It is the Lagrangian bound of a program with a variable for each way in which a job may run
// (after Held and Karp, Math. Programming 1, 1971). At the best prices it is not below the bound
// by mean busy times (Goemans, Queyranne, Schulz, Skutella and Wang, SIAM J. Discrete Math. 15,
// 2002) on devices of which a job takes no more than its gang at once: there a job ends half its
// duration after the mean of its running time or later, here it pays for its end itself. Both
// are recalled, not read.
//
// Of drawn instances of up to five jobs on up to four devices the best schedule is at 1.04 of
// all bounds here in the mean, at 1.12 of the two without this one (TestGap). What is lost: prices
// say nothing of how a gang fits beside several others, they are
// those of cells of time, and they are sought with limited effort.

const (
	// levels is on how many grids of cells prices are sought, one narrower than the other, and
	// rounds how often they are set on each.
	levels, rounds = 6, 50
	// leastVisits and visitsPerJob are how many cells jobs may look at while prices are sought, but
	// no more than mostVisits: a bound is to cost less than the simulation that it judges. With
	// lastVisits more the bound at the prices found is computed.
	leastVisits, visitsPerJob, mostVisits, lastVisits = 500_000, 2_000, 10_000_000, 50_000_000
	// few are so many jobs that like ones are not put together.
	few = 20_000
)

// queueing is the bound on the mean, of jobs in order of submission from 0 on and a machine of
// that speed; 0 where it would take too long. The guess of the sum only says how bold the first
// steps are.
func queueing(jobs []Job, speed uint64, guess float64) unit.Duration {
	m := open(jobs, speed, cells(jobs, speed))
	for level := range levels {
		patience := 3 // with prices from nothing
		if level > 0 {
			m, patience = m.refined(), 2
		}
		if !m.seekPrices(merged(m.buyers(jobs)), guess, patience) {
			break
		}
	}
	m.most = m.seen + lastVisits
	sum, gross := m.sell(m.buyers(jobs))
	// Both are sums of at most so many terms that come to gross in all, and an operation is off
	// by one part in 2^53 at most: this more than makes up for it.
	sum -= gross * float64(len(jobs)+16*len(m.begins)+64) * 0x1p-52
	return unit.Duration(max(0, sum/float64(len(jobs))))
}

// seekPrices looks for prices at which the bound is high: dearer where more is bought than there
// is, cheaper where less is (subgradients with Polyak's step), in shorter steps after so many that
// did not help. It reports whether narrower cells may help more.
func (m *market) seekPrices(jobs []buyer, guess float64, patience int) (more bool) {
	top, bold, failed := math.Inf(-1), 1.0, 0
	good := make([][]float64, len(m.rows))
	for i := range good {
		good[i] = slices.Clone(m.rows[i].price)
	}
	for round := 0; round < rounds && m.seen < m.most; round++ {
		sum, _ := m.sell(jobs)
		if sum > top {
			top, failed = sum, 0
			for i := range good {
				copy(good[i], m.rows[i].price)
			}
		} else if failed++; failed == patience {
			bold, failed = bold*.7, 0
		}
		steep := m.trends()
		if steep == 0 {
			break // nowhere is more bought than there is: it gets no better
		}
		m.move(bold * (max(guess, 1.02*top) - sum) / steep)
	}
	for i := range good {
		copy(m.rows[i].price, good[i])
		more = more || slices.ContainsFunc(good[i], func(p float64) bool { return p > 0 })
	}
	return more && m.seen < m.most
}

// trends says by how much more is bought than there is, and how much that is in all.
func (m *market) trends() (steep float64) {
	last := len(m.begins) - 1
	for i := range m.rows {
		r := &m.rows[i]
		for k := range last {
			r.trend[k] = -1
		}
		for s, part := range r.part {
			if part > 0 {
				for k, bought := range m.bought[s][:last] {
					r.trend[k] += part * bought / (m.begins[k+1] - m.begins[k])
				}
			}
		}
		for k := range last {
			long := m.begins[k+1] - m.begins[k]
			if r.price[k] == 0 {
				r.trend[k] = max(0, r.trend[k]) // nothing is cheaper than free
			}
			steep += r.trend[k] * r.trend[k] * long
		}
	}
	return steep
}

// move changes prices along the trends.
func (m *market) move(step float64) {
	for i := range m.rows {
		r := &m.rows[i]
		for k := range len(m.begins) - 1 {
			r.price[k] = max(0, r.price[k]+step*r.trend[k])
		}
	}
}

// merged puts jobs of one size, submitted in one cell, of much the same duration together where
// there are many: good prices for those are good for all.
func merged(all []buyer) []buyer {
	if len(all) <= few {
		return all
	}
	type kind struct{ size, cell, work int32 }
	place := map[kind]int{}
	var out []buyer
	for _, b := range all {
		k := kind{b.size, b.cell, int32(2 * math.Log2(b.work+1))}
		i, ok := place[k]
		if !ok {
			i = len(out)
			place[k], out = i, append(out, buyer{size: b.size, cell: b.cell})
		}
		o := &out[i]
		o.many++
		o.submit += (b.submit - o.submit) / o.many
		o.work += (b.work - o.work) / o.many
	}
	return out
}
