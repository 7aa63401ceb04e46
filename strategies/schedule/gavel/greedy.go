package gavel

import (
	"cmp"
	"math"
	"slices"
)

// pour is the greedy twin of fill: it looks for the highest level to which everybody
// can be brought when the jobs help themselves one after the other, each to the types
// that cost it the fewest devices; those go first to whom the second choice is worth
// least beside the first. What is left then goes to those who can use it, in the same order.
func pour(p Problem, a [][]float64, refine bool) ([][]float64, float64, error) {
	choices, order, high := p.turns(a)
	if len(order) == 0 {
		return p.nothing(), 1, nil
	}
	low := 0.0
	best, room, _ := p.bring(a, choices, order, high)
	if best == nil {
		for range 50 {
			mid := (low + high) / 2
			if x, left, ok := p.bring(a, choices, order, mid); ok {
				low, best, room = mid, x, left
			} else {
				high = mid
			}
		}
	} else {
		low = high
	}
	if best == nil {
		best, room, _ = p.bring(a, choices, order, 0)
	}
	if !refine {
		order = nil
	}
	for _, j := range order {
		free := 1 - sum(best[j])
		for _, k := range choices[j] {
			more := min(free, room[k]/p.Gang[j])
			best[j][k] += more
			free -= more
			room[k] -= float64(p.Gang[j] * more)
		}
	}
	return best, max(low, 1e-12), nil
}

// turns are the types of all jobs, the best first, the order in which they help themselves,
// and the level that the first of them cannot pass.
func (p Problem) turns(a [][]float64) (choices [][]int, order []int, high float64) {
	order, choices, high = make([]int, 0, len(a)), make([][]int, len(a)), math.Inf(1)
	loss := make([]float64, len(a))
	for j := range a {
		choices[j] = p.choices(j, a[j])
		if len(choices[j]) == 0 {
			continue // it cannot run anywhere and must not hold the level at 0
		}
		loss[j] = math.Inf(1)
		if len(choices[j]) > 1 {
			loss[j] = a[j][choices[j][0]] / a[j][choices[j][1]]
		}
		high = min(high, a[j][choices[j][0]])
		order = append(order, j)
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(loss[j], loss[i]), cmp.Compare(p.Gang[j], p.Gang[i]), cmp.Compare(i, j))
	})
	return choices, order, high
}

// choices are the types a job can run on, the best first.
func (p Problem) choices(j int, a []float64) []int {
	var types []int
	for k := range a {
		if a[k] > 0 && p.Gang[j] <= p.Room[k] {
			types = append(types, k)
		}
	}
	slices.SortStableFunc(types, func(k, l int) int { return cmp.Compare(a[l], a[k]) })
	return types
}

func (p Problem) nothing() [][]float64 {
	x := make([][]float64, len(p.Rate))
	for j := range x {
		x[j] = make([]float64, len(p.Room))
	}
	return x
}

// bring brings every job to the level, if it can, and returns what is left.
func (p Problem) bring(a [][]float64, choices [][]int, order []int, level float64) (x [][]float64, room []float64, ok bool) {
	x, room = p.nothing(), slices.Clone(p.Room)
	for _, j := range order {
		missing, time := level, 1.0
		for _, k := range choices[j] {
			part := min(missing/a[j][k], time, room[k]/p.Gang[j])
			if part <= 0 {
				continue
			}
			x[j][k] = part
			missing -= float64(part * a[j][k])
			time -= part
			room[k] -= float64(p.Gang[j] * part)
		}
		if missing > 1e-9*level {
			return nil, nil, false
		}
	}
	return x, room, true
}

func sum(xs []float64) (s float64) {
	for _, x := range xs {
		s += x
	}
	return s
}

// greedyCost is the greedy twin of cost: first every deadline in turn, on the type
// that keeps it with the best worth, then the best worth per device.
func greedyCost(p Problem) (Shares, error) {
	type choice struct {
		job, kind int
		worth     float64
	}
	var all []choice
	for j, rates := range p.Rate {
		for k, r := range rates {
			if r > 0 && p.Gang[j] <= p.Room[k] {
				all = append(all, choice{j, k, r / p.price(k) / p.Gang[j]})
			}
		}
	}
	slices.SortStableFunc(all, func(c, d choice) int { return cmp.Compare(d.worth, c.worth) })
	x, room := p.nothing(), slices.Clone(p.Room)
	take := func(c choice, most float64) {
		part := min(most, 1-sum(x[c.job]), room[c.kind]/p.Gang[c.job])
		if part > 0 {
			x[c.job][c.kind] += part
			room[c.kind] -= float64(part * p.Gang[c.job])
		}
	}
	for _, c := range all {
		if p.SLOSec != nil && p.SLOSec[c.job] > 0 {
			missing := p.Steps[c.job]/p.SLOSec[c.job] - dot(p.Rate[c.job], x[c.job])
			take(c, max(missing, 0)/p.Rate[c.job][c.kind])
		}
	}
	for _, c := range all {
		take(c, 1)
	}
	return p.valued(x), nil
}
