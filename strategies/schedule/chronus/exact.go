package chronus

import (
	"slices"

	"github.com/musterdl/muster/mechanism/solve"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/schedule/lease"
)

// The program that is asked when the greedy packing fails is bounded in size and in
// work: beyond that the answer is no.
const (
	mostVariables = 2000
	mostNodes     = 200
)

// exact packs all promises anew by the published integer program: which job holds which
// lease, so that every job's are worth what it needs and no lease is promised twice.
// Late leases are preferred. Who holds the lease that runs keeps it.
func (s *selector) exact(now unit.Time, asks []lease.Ask) bool {
	if len(asks) > s.config.ExactJobs {
		return false
	}
	p, slots := &solve.Problem{}, []slot(nil)
	first := s.cal.At(now)
	last := first
	for _, a := range asks {
		last = max(last, s.cal.At(a.By-1))
	}
	rows := make([][]solve.Term, last-first+1)
	for i, a := range asks {
		var worth []solve.Term
		for n := first; n <= s.cal.At(a.By-1); n++ {
			if len(slots) == mostVariables {
				return false
			}
			low := 0.0
			if s.cal.Find(a.Job).Holds(n) && n == first {
				low = 1
			}
			v := p.Whole(low, 1, float64(a.Size*(last-n+1)))
			slots = append(slots, slot{i, n})
			worth = append(worth, solve.Term{Var: v, Coef: s.cal.Worth(n, now, a.By).Seconds()})
			rows[n-first] = append(rows[n-first], solve.Term{Var: v, Coef: float64(a.Size)})
		}
		p.Row(a.Need.Seconds(), solve.Inf, worth...)
	}
	for _, terms := range rows {
		p.Row(-solve.Inf, float64(s.cal.Capacity()), terms...)
	}
	answer, err := solve.Solve(p, solve.Budget{Nodes: mostNodes, Gap: 0.1})
	if err != nil || answer.X == nil {
		return false
	}
	return s.adopt(now, asks, slots, answer.X)
}

// slot is what a variable of the program stands for: a job and a lease.
type slot struct {
	ask   int
	lease int64
}

// adopt takes the program's answer over if it is one: solvers round.
func (s *selector) adopt(now unit.Time, asks []lease.Ask, slots []slot, x []float64) bool {
	holdings := make([]lease.Holding, len(asks))
	for i, a := range asks {
		begun := s.cal.Begun(s.cal.Begin(s.cal.At(now))-1, a.Job)
		holdings[i] = lease.Holding{Job: a.Job, Size: a.Size, By: a.By, Leases: slices.Clone(begun)}
	}
	for v, at := range slots {
		if x[v] > 0.5 {
			holdings[at.ask].Leases = append(holdings[at.ask].Leases, at.lease)
		}
	}
	for i := range holdings {
		if h := &holdings[i]; s.cal.Promised(now, h) < asks[i].Need {
			return false
		}
	}
	slices.SortFunc(holdings, func(a, b lease.Holding) int { return int(a.Job) - int(b.Job) })
	s.cal.Replace(holdings)
	return true
}
