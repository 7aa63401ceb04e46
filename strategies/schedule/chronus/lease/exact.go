package lease

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/mechanism/solve"
	"github.com/musterdl/muster/model/unit"
)

// The program that is asked when the greedy packing fails is bounded in size and in
// work: beyond that the answer is no.
const (
	mostVariables = 2000
	mostNodes     = 200
)

// PackExactly promises anew what all jobs ask for, by the integer program that Chronus
// publishes: which job holds which lease, so that every job's are worth what it needs and
// no lease is promised twice. Late leases are preferred. Who holds the lease that runs
// keeps it. If the program has no answer, or is too large, nothing changes.
func (c *Calendar) PackExactly(now unit.Time, asks []Ask) bool {
	p, slots := &solve.Problem{}, []slot(nil)
	first := c.At(now)
	last := first
	for _, a := range asks {
		last = max(last, c.At(a.By-1))
	}
	rows := make([][]solve.Term, last-first+1)
	for i, a := range asks {
		var worth []solve.Term
		for n := first; n <= c.At(a.By-1); n++ {
			if len(slots) == mostVariables {
				return false
			}
			low := 0.0
			if c.Find(a.Job).Holds(n) && n == first {
				low = 1
			}
			v := p.Whole(low, 1, float64(a.Size*(last-n+1)))
			slots = append(slots, slot{i, n})
			worth = append(worth, solve.Term{Var: v, Coef: c.Worth(n, now, a.By).Seconds()})
			rows[n-first] = append(rows[n-first], solve.Term{Var: v, Coef: float64(a.Size)})
		}
		p.Row(a.Need.Seconds(), solve.Inf, worth...)
	}
	for _, terms := range rows {
		p.Row(-solve.Inf, float64(c.capacity), terms...)
	}
	answer, err := solve.Solve(p, solve.Budget{Nodes: mostNodes, Gap: 0.1})
	if err != nil || answer.X == nil {
		return false
	}
	return c.adopt(now, asks, slots, answer.X)
}

// slot is what a variable of the program stands for: a job and a lease.
type slot struct {
	ask   int
	lease int64
}

// adopt takes the program's answer over if it is one: solvers round.
func (c *Calendar) adopt(now unit.Time, asks []Ask, slots []slot, x []float64) bool {
	holdings := make([]Holding, len(asks))
	for i, a := range asks {
		begun := c.Begun(c.Begin(c.At(now))-1, a.Job)
		holdings[i] = Holding{Job: a.Job, Size: a.Size, By: a.By, Leases: slices.Clone(begun)}
	}
	for v, at := range slots {
		if x[v] > 0.5 {
			holdings[at.ask].Leases = append(holdings[at.ask].Leases, at.lease)
		}
	}
	for i := range holdings {
		if h := &holdings[i]; c.Promised(now, h) < asks[i].Need {
			return false
		}
	}
	slices.SortFunc(holdings, func(a, b Holding) int { return int(a.Job) - int(b.Job) })
	c.Replace(holdings)
	return true
}

// Overfull reports whether there is some instant before which more is asked for than all
// devices can do: then no packing helps.
func (c *Calendar) Overfull(now unit.Time, asks []Ask) bool {
	order := slices.Clone(asks)
	slices.SortFunc(order, func(a, b Ask) int { return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Job, b.Job)) })
	sum := int64(0)
	for _, a := range order {
		if sum += a.Size * int64(a.Need); sum > c.capacity*int64(a.By.Sub(now)) {
			return true
		}
	}
	return false
}
