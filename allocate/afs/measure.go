package afs

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/allocate/divide"
)

// The stand of the claim: one pool of devices, jobs that come by chance, and rates
// n/(1+b(n-1)). The median sets the unit of time alone, which the costs of restarts are
// compared with.
const (
	devices  = 64
	most     = 32 // devices of one job
	jobs     = 200
	sigma    = 1.5
	medianS  = 1500 // of the work at one device
	pairs    = 20000
	snapshot = 10 // events between two looks at the inner score
	tried    = 20 // divisions of each
)

// stand is one draw of the workload.
type stand struct {
	jobs  []divide.Arrival
	parts []float64 // b, by job
	moves int       // changes of a running job's share
}

// draw makes the workload: b evenly between low and high, arrivals such that the work
// of all jobs is the load's part of what the devices could do.
func draw(seed uint64, load, low, high float64) *stand {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &stand{}
	at, mean := 0.0, medianS*math.Exp(sigma*sigma/2)
	for range jobs {
		at += rng.ExpFloat64() * mean / (load * devices)
		s.jobs = append(s.jobs, divide.Arrival{At: at, Work: medianS * math.Exp(sigma*rng.NormFloat64())})
		s.parts = append(s.parts, low+(high-low)*rng.Float64())
	}
	return s
}

func (s *stand) rate(job int, n int32) float64 {
	return float64(n) / (1 + s.parts[job]*float64(max(0, n-1)))
}

// rule divides the devices among the active jobs.
type rule func(s *stand, active []int, left []float64) []int32

func (s *stand) of(active []int) divide.Rate {
	return func(i int, n int32) float64 { return s.rate(active[i], n) }
}

func pairRule(s *stand, active []int, left []float64) []int32 {
	c := make([]divide.Claimant, len(active))
	for i, j := range active {
		c[i] = divide.Claimant{Left: left[j], Most: most}
	}
	return divide.Pairs(c, devices, s.of(active))
}

// shortestFirst gives the job that could end soonest all it can use, then the next.
func shortestFirst(s *stand, active []int, left []float64) []int32 {
	order := make([]int, len(active))
	for i := range order {
		order[i] = i
	}
	ends := func(i int) float64 { return left[active[i]] / s.rate(active[i], most) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ends(a), ends(b)) })
	shares, free := make([]int32, len(active)), int32(devices)
	for _, i := range order {
		shares[i] = min(most, free)
		free -= shares[i]
	}
	return shares
}

// gain is Optimus's: one device each, in order of arrival, then by the fall of the time
// that is left.
func gain(s *stand, active []int, left []float64) []int32 {
	shares := make([]int32, len(active))
	for i := range shares[:min(len(shares), devices)] {
		shares[i] = 1
	}
	divide.Greedy(shares, int32(max(0, devices-len(shares))), func(i int, n int32) float64 {
		if j := active[i]; n > 0 && n < most {
			return left[j]/s.rate(j, n) - left[j]/s.rate(j, n+1)
		}
		return 0
	})
	return shares
}

func equalShare(_ *stand, active []int, _ []float64) []int32 {
	shares := make([]int32, len(active))
	divide.Greedy(shares, devices, func(_ int, n int32) float64 {
		if n < most {
			return 1 / float64(n+1)
		}
		return 0
	})
	return shares
}

// play returns the mean JCT under a rule where a change of a running job's share costs
// so many seconds.
func (s *stand) play(r rule, cost float64) float64 {
	has := map[int]int32{}
	s.moves = 0
	ends := divide.Run(s.jobs, 0, divide.Elastic(s.rate, cost, func(active []int, left []float64) []int32 {
		shares := r(s, active, left)
		for i, j := range active {
			if has[j] > 0 && has[j] != shares[i] {
				s.moves++
			}
			has[j] = shares[i]
		}
		return shares
	}))
	return divide.MeanJCT(s.jobs, ends)
}

// rules are what is compared, by the names of the figures.
var rules = []struct {
	name string
	rule rule
}{{"afs", pairRule}, {"srtf", shortestFirst}, {"gain", gain}, {"equal", equalShare}}

// Measure plays 200 elastic jobs on 64 devices under AFS-L, elastic SRTF, the gain of
// Optimus and equal shares: at three loads, with perfectly scaling jobs, and with
// restarts that cost something.
func Measure(seed uint64) map[string]float64 {
	m := map[string]float64{}
	for _, load := range []int{30, 60, 90} {
		s := draw(seed, float64(load)/100, .02, .3)
		for _, r := range rules {
			m[fmt.Sprintf("%s_jct_s_load%d", r.name, load)] = s.play(r.rule, 0)
			m[fmt.Sprintf("%s_resizes_per_job_load%d", r.name, load)] = float64(s.moves) / jobs
		}
	}
	perfect, middle := draw(seed, .9, 0, 0), draw(seed, .6, .02, .3)
	for _, r := range rules {
		m[r.name+"_jct_s_perfect_scaling_load90"] = perfect.play(r.rule, 0)
		for _, cost := range []float64{2, 30, 120} {
			m[fmt.Sprintf("%s_jct_s_load60_restart%g", r.name, cost)] = middle.play(r.rule, cost)
		}
	}
	for _, n := range []int32{1, 2, 4, 8, 16} {
		m[fmt.Sprintf("longer_wins_at_%d", n)] = longerWins(seed, n)
	}
	m["inner_rank_correlation"], m["gain_inner_rank_correlation"] = innerRank(middle, seed)
	return m
}

// longerWins is how often the pair rule prefers the longer of two jobs with equally
// many devices. The survey says that AFS does so when it expects contention; the rule
// expects nothing.
func longerWins(seed uint64, n int32) float64 {
	rng, wins := rand.New(rand.NewPCG(seed, 2)), 0.0
	for range pairs {
		s := stand{parts: []float64{.02 + .28*rng.Float64(), .02 + .28*rng.Float64()}}
		var side [2]divide.Side
		for j := range side {
			side[j] = divide.Side{Left: math.Exp(sigma * rng.NormFloat64()), First: 1, Now: s.rate(j, n), More: s.rate(j, n+1)}
		}
		short, long := side[0], side[1]
		if short.Left/short.Now > long.Left/long.Now {
			short, long = long, short
		}
		if !divide.First(short, long) {
			wins++
		}
	}
	return wins / pairs
}

// innerRank compares, at moments of a run, random divisions of the devices by an inner
// goal and by the mean JCT if the division stays until a job ends and AFS decides from
// there. It is the mean rank correlation of the two, for AFS's goal and for Optimus's.
func innerRank(s *stand, seed uint64) (afs, gain float64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	events, looks := 0, 0.0
	divide.Run(s.jobs, 0, divide.Elastic(s.rate, 0, func(active []int, left []float64) []int32 {
		if events++; events%snapshot == 0 && len(active) > 2 && len(active) < devices/2 {
			if a, g := s.agreement(active, left, rng); !math.IsNaN(a + g) {
				afs, gain, looks = afs+a, gain+g, looks+1
			}
		}
		return pairRule(s, active, left)
	}))
	return afs / looks, gain / looks
}

func (s *stand) agreement(active []int, left []float64, rng *rand.Rand) (afs, gain float64) {
	now := &stand{}
	for _, j := range active {
		now.jobs = append(now.jobs, divide.Arrival{Work: left[j]})
		now.parts = append(now.parts, s.parts[j])
	}
	unmade, remaining, real := make([]float64, tried), make([]float64, tried), make([]float64, tried)
	for k := range tried {
		shares := make([]int32, len(active))
		for i := range shares {
			shares[i] = 1
		}
		for range devices - len(active) {
			if i := rng.IntN(len(active)); shares[i] < most {
				shares[i]++
			}
		}
		unmade[k] = now.unmade(shares)
		for i, n := range shares {
			remaining[k] += now.jobs[i].Work / now.rate(i, n)
		}
		begun := false
		real[k] = now.play(func(s *stand, active []int, left []float64) []int32 {
			if !begun {
				begun = true
				return shares
			}
			return pairRule(s, active, left)
		}, 0)
	}
	return divide.RankCorrelation(unmade, real), divide.RankCorrelation(remaining, real)
}

// unmade is AFS's inner goal as a figure of a division: how many devices, by the pair
// rule, should have gone to another job.
func (s *stand) unmade(shares []int32) float64 {
	side := func(i int, n int32) divide.Side {
		return divide.Side{Left: s.jobs[i].Work, First: 1, Now: s.rate(i, n), More: s.rate(i, n+1)}
	}
	wrong := 0
	for i := range shares {
		for j := range shares {
			if i != j && shares[i] < most && shares[j] > 1 && divide.First(side(i, shares[i]), side(j, shares[j]-1)) {
				wrong++
			}
		}
	}
	return float64(wrong)
}
