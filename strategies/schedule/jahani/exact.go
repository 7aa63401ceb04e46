package jahani

import (
	"fmt"
	"math"

	"github.com/musterdl/muster/mechanism/solve"
)

// place is what a variable of the program stands for.
type place struct{ job, node, machine, devices int }

// Exact is the integer program: which node is rented as what, and which job runs on how
// many devices of it. It reports whether the plan was shown to be the best there is;
// within the budget there may be none at all.
func Exact(p *Problem, b solve.Budget) (plan Plan, proven bool, err error) {
	q := &solve.Problem{}
	rented := make([][]int, p.Nodes)
	for n := range rented {
		var one, before, rank []solve.Term
		for m := range p.Machines {
			v := q.Whole(0, 1, 0)
			rented[n] = append(rented[n], v)
			one = append(one, solve.Term{Var: v, Coef: 1})
			rank = append(rank, solve.Term{Var: v, Coef: float64(m + 1)})
			if n > 0 {
				before = append(before, solve.Term{Var: rented[n-1][m], Coef: float64(-m - 1)})
			}
		}
		q.Row(0, 1, one...)
		if n > 0 { // nodes are alike: the first are rented as the last machines
			q.Row(-solve.Inf, 0, append(rank, before...)...)
		}
	}
	for m := range p.Machines {
		if most := p.Machines[m].Most; most > 0 {
			all := make([]solve.Term, p.Nodes)
			for n := range all {
				all[n] = solve.Term{Var: rented[n][m], Coef: 1}
			}
			q.Row(0, float64(most), all...)
		}
	}
	places, base := p.places(q, rented)
	answer, err := solve.Solve(q, b)
	if err != nil {
		return Plan{}, false, fmt.Errorf("choosing machines: %w", err)
	}
	if answer.X == nil {
		return Plan{}, false, nil
	}
	plan = Plan{Rented: make([]int, p.Nodes), Jobs: make([]Choice, len(p.Jobs))}
	for n := range rented {
		plan.Rented[n] = none
		for m, v := range rented[n] {
			if answer.X[v] > 0.5 {
				plan.Rented[n] = m
			}
		}
	}
	for i, at := range places {
		if answer.X[base+2*i] > 0.5 {
			plan.Jobs[at.job] = Choice{at.node, at.devices}
		}
	}
	return plan, answer.Status == solve.Optimal, nil
}

// places adds a variable for every place a job may have and one, right behind it, that
// says that it is the first there to end: the one that ends first costs least, so it is
// found without being asked for. It returns the places and their first variable.
func (p *Problem) places(q *solve.Problem, rented [][]int) (places []place, base int) {
	base = p.Nodes * len(p.Machines)
	once := make([][]solve.Term, len(p.Jobs))
	for n := range rented {
		for m, machine := range p.Machines {
			used := []solve.Term{{Var: rented[n][m], Coef: -float64(machine.Devices)}}
			first := []solve.Term{{Var: rented[n][m], Coef: -1}}
			for job := range p.Jobs {
				for g := 1; g <= machine.Devices; g++ {
					t := p.seconds(job, m, g)
					if math.IsInf(t, 1) {
						continue
					}
					runs := q.Whole(0, 1, p.late(job, t)-p.postponed(job))
					ends := q.Var(0, 1, machine.PricePerHour/3600*t)
					places = append(places, place{job, n, m, g})
					once[job] = append(once[job], solve.Term{Var: runs, Coef: 1})
					used = append(used, solve.Term{Var: runs, Coef: float64(g)})
					first = append(first, solve.Term{Var: ends, Coef: 1})
					q.Row(-solve.Inf, 0, solve.Term{Var: ends, Coef: 1}, solve.Term{Var: runs, Coef: -1})
				}
			}
			q.Row(-solve.Inf, 0, used...)
			q.Row(0, solve.Inf, first...)
		}
	}
	for _, terms := range once {
		q.Row(0, 1, terms...)
	}
	return places, base
}
