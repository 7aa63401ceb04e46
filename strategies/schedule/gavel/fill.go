package gavel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/solve"
)

// frame is the linear program all policies share: parts of time that are not negative
// and add up to 1 at most, on no more devices than there are.
//
// A job may stand for count[j] of its kind.
func (p Problem) frame(count []float64) (*solve.Problem, [][]int) {
	lp := &solve.Problem{}
	at := make([][]int, len(p.Rate))
	used := make([][]solve.Term, len(p.Room))
	for j, rates := range p.Rate {
		at[j] = make([]int, len(rates))
		var time []solve.Term
		for k, r := range rates {
			most := 1.0
			if r <= 0 || p.Gang[j] > p.Room[k] {
				most = 0
			}
			at[j][k] = lp.Var(0, most, 0)
			time = append(time, solve.Term{Var: at[j][k], Coef: 1})
			used[k] = append(used[k], solve.Term{Var: at[j][k], Coef: p.Gang[j] * count[j]})
		}
		lp.Row(0, 1, time...)
	}
	for k, w := range p.Room {
		lp.Row(0, w, used[k]...)
	}
	return lp, at
}

// fill raises the least value as far as it goes, fixes the jobs that hold it there
// (those whose row has a price) and, if it is to refine, goes on with the others
// until all are fixed. Their values are then the one division no job of which can
// gain but at the expense of one that has no more; of the ways to reach it, it takes
// one of least device time.
//
// Jobs that are alike in all the program sees are one row of it and get the same.
func fill(p Problem, a [][]float64, refine bool) ([][]float64, float64, error) {
	return fillBy(p, a, refine, mostWhole, mostAlike)
}

// fillBy is fill with up to so many kinds of jobs in one program, and of more so many of those who
// choose alike.
func fillBy(p Problem, a [][]float64, refine bool, whole, mostAlike int) ([][]float64, float64, error) {
	_, unit, err := pour(p, a, false) // near the level we look for, which is good for the figures
	if err != nil {
		return nil, 0, err
	}
	kind, first := alike(p.Gang, a)
	f := filling{p: Problem{Room: p.Room}, count: make([]float64, len(first)), unit: unit, x: make([][]float64, len(first)),
		sieve: sieve{whole: whole, alike: mostAlike}}
	defer f.solver.Close()
	for _, k := range kind {
		f.count[k]++
	}
	for _, j := range first {
		f.p.Rate, f.p.Gang, f.a = append(f.p.Rate, p.Rate[j]), append(f.p.Gang, p.Gang[j]), append(f.a, a[j])
	}
	level, err := f.run(refine)
	if err != nil {
		return nil, 0, err
	}
	x := make([][]float64, len(a))
	for j, k := range kind {
		x[j] = slices.Clone(f.x[k])
	}
	return x, level, nil
}

// alike returns every job's kind and every kind's first job. Jobs are of a kind if
// their gangs and their values are the same.
func alike(gang []float64, a [][]float64) (kind, first []int) {
	order := make([]int, len(a))
	for j := range order {
		order[j] = j
	}
	compare := func(i, j int) int { return cmp.Or(cmp.Compare(gang[i], gang[j]), slices.Compare(a[i], a[j])) }
	slices.SortStableFunc(order, compare)
	kind = make([]int, len(a))
	for i, j := range order {
		if i == 0 || compare(order[i-1], j) != 0 {
			first = append(first, j)
		}
		kind[j] = len(first) - 1
	}
	return kind, first
}

// filling is where fill has got to, by kind of job.
type filling struct {
	p     Problem
	count []float64
	a     [][]float64
	cap   []float64 // the best value a job can have
	floor []float64 // the value fixed jobs have; -1 is free, 0 cannot run
	free  int
	unit  float64 // near the next level, so that it is about 1 in the program
	x     [][]float64
	sieve sieve

	solver solve.Solver
}

// run fills and returns the first level.
func (f *filling) run(refine bool) (first float64, err error) {
	f.floor, f.cap = make([]float64, len(f.a)), make([]float64, len(f.a))
	for j := range f.a {
		f.floor[j], f.cap[j] = -1, slices.Max(f.able(j))
		if len(f.p.choices(j, f.a[j])) == 0 {
			f.floor[j] = 0 // it cannot run and must not hold the level at 0
			continue
		}
		f.free++
	}
	for f.free > 0 {
		level, err := f.raise()
		if err != nil {
			return 0, err
		}
		if first == 0 {
			first = level
		}
		if !refine {
			return first, nil
		}
	}
	_, _, err = f.solve(f.targets(math.Inf(1)), false)
	return first, err
}

// targets are the floors of those who are fixed; of the others no more than most, as a part
// of which their values rise together.
func (f *filling) targets(most float64) []target {
	targets := make([]target, len(f.a))
	for j, floor := range f.floor {
		if targets[j].floor = floor; floor < 0 {
			targets[j] = target{each: min(most, f.cap[j])}
		}
	}
	return targets
}

// slack is what a fixed value gives way, relatively, so that rounding does not make
// the next program infeasible.
const slack = 4e-9

// taste makes one of equally good divisions the best: a price of 1 to 1.5, by no rule
// that a program could share.
func taste(i int) float64 {
	_, part := math.Modf(float64(i+1) * math.Phi)
	return 1 + part/2
}

// value is a job's value in units.
func (f *filling) value(j int, vars []int, unit float64) []solve.Term {
	terms := make([]solve.Term, len(vars), len(vars)+1)
	for k, v := range vars {
		terms[k] = solve.Term{Var: v, Coef: f.a[j][k] / unit}
	}
	return terms
}

// raise solves one program: the level the free jobs can reach while the others keep
// theirs. It fixes those that hold it and returns it.
func (f *filling) raise() (float64, error) {
	targets := f.targets(math.Inf(1))
	for j := range targets {
		if targets[j].each > 0 {
			targets[j].each = f.unit
		}
	}
	level, at, err := f.level(targets)
	if err != nil {
		return 0, err
	}
	before := f.free
	level *= f.unit
	for j := range f.a {
		has := dot(f.a[j], f.x[j])
		switch {
		case f.floor[j] >= 0:
			f.floor[j] = min(f.floor[j], has) // has is less by rounding at most
		case at.value[j] > 1e-7, f.cap[j] <= level*(1+1e-9):
			f.floor[j] = min(level, has)
			f.free--
		}
	}
	if f.free == before {
		return 0, errors.New("max-min: nobody holds the level")
	}
	f.unit = level
	if len(f.a) > f.sieve.whole && slices.Max(at.device) < 1e-12 {
		return level, f.skip()
	}
	return level, nil
}

// skip fixes at once all who will have the most that they can have before devices are
// short: it looks for the highest such level.
func (f *filling) skip() error {
	var caps []float64
	for j, floor := range f.floor {
		if floor < 0 {
			caps = append(caps, f.cap[j])
		}
	}
	slices.Sort(caps)
	caps = slices.Compact(caps)
	low, high := -1, len(caps)
	for high-low > 1 {
		mid := (low + high) / 2
		part, _, err := f.level(f.targets(caps[mid]))
		switch {
		case err != nil:
			return err
		case part < 1-1e-10:
			high = mid
		default:
			low = mid
		}
	}
	for j, floor := range f.floor {
		if low >= 0 && floor < 0 && f.cap[j] <= caps[low] {
			f.floor[j] = f.cap[j]
			f.free--
			f.unit = caps[low]
		}
	}
	return nil
}

func solved(by *solve.Solver, lp *solve.Problem) (solve.Solution, error) {
	s, err := by.Solve(lp, solve.Budget{})
	if err == nil && s.Status != solve.Optimal {
		err = fmt.Errorf("the program is %s", s.Status)
	}
	return s, err
}

func (p Problem) parts(x []float64, at [][]int) [][]float64 {
	parts := make([][]float64, len(at))
	for j, vars := range at {
		parts[j] = make([]float64, len(vars))
		for k, v := range vars {
			parts[j][k] = min(max(x[v], 0), 1)
		}
	}
	return parts
}
