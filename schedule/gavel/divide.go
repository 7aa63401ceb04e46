package gavel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/solve"
)

// Problem is what a policy divides among jobs. Slices go by job, the inner ones and
// Room and Price by device type.
type Problem struct {
	Policy string      // one of Policies
	Rate   [][]float64 // steps per second of the whole gang; 0 is: cannot run there
	Gang   []float64
	Room   []float64 // devices

	Weight []float64 // max-min; nil is 1 for all
	Steps  []float64 // that are left; all policies but max-min
	Done   []float64 // steps behind; finish-time fairness
	AgeSec []float64 // since submission; finish-time fairness
	SLOSec []float64 // until the deadline, 0 is none; cost, nil is none
	Price  []float64 // of a device per hour; cost, nil is 1 for all
}

// The policies.
const (
	MaxMin            = "max-min"
	Agnostic          = "agnostic"
	Makespan          = "makespan"
	Cost              = "cost"
	FinishTimeFairest = "finish-time-fairness"
)

// Policies are the names a Problem and a Config may carry.
var Policies = []string{MaxMin, Agnostic, Makespan, Cost, FinishTimeFairest}

// Shares say which part of its time a job is to spend on each type, and how good
// that is.
type Shares struct {
	X [][]float64
	// Objective is the policy's: the smallest normalised rate (max-min, agnostic), the
	// seconds until the last job ends (makespan), steps per second and price (cost),
	// the worst ratio of finishing times (finish-time fairness).
	Objective float64
}

// Divide solves the problem exactly. Among all best divisions it takes, of the
// max-min policies, the one whose remaining jobs are best off in turn, and among
// those one of the least device time; so it does not depend on the solver's taste.
func Divide(p Problem) (Shares, error) { return divide(p, fill, cost) }

// Greedy divides in about n log n: the twin of Divide for many jobs.
func Greedy(p Problem) (Shares, error) { return divide(p, pour, greedyCost) }

// filler divides so that the least of the values a[j] . X[j] is as large as it can
// make it, and returns it; refine asks for the other jobs' good as well.
type filler func(p Problem, a [][]float64, refine bool) ([][]float64, float64, error)

func divide(p Problem, f filler, cost func(Problem) (Shares, error)) (Shares, error) {
	if len(p.Rate) == 0 {
		return Shares{}, nil
	}
	switch p.Policy {
	case MaxMin:
		x, level, err := f(p, p.normalised(), true)
		return Shares{x, level}, err
	case Agnostic:
		return p.agnostic(), nil
	case Makespan:
		x, level, err := f(p, p.perSteps(func(j int) float64 { return 1 }), true)
		return Shares{x, 1 / level}, err
	case FinishTimeFairest:
		return p.finish(f)
	case Cost:
		return cost(p)
	}
	return Shares{}, fmt.Errorf("policy %q: it must be one of %q", p.Policy, Policies)
}

func (p Problem) devices() float64 {
	sum := 0.0
	for _, w := range p.Room {
		sum += w
	}
	return sum
}

func (p Problem) weight(j int) float64 {
	if p.Weight == nil {
		return 1
	}
	return p.Weight[j]
}

// normalised values a rate by what the job would have under equal division: each of
// n jobs an n-th of every type, but never more than all of its time.
func (p Problem) normalised() [][]float64 {
	a := make([][]float64, len(p.Rate))
	share := 1 / max(float64(len(p.Rate)), p.devices())
	for j, rates := range p.Rate {
		equal := 0.0
		for k, r := range rates {
			equal += float64(r * p.Room[k] * share)
		}
		a[j] = make([]float64, len(rates))
		for k, r := range rates {
			if equal > 0 {
				a[j][k] = p.Gang[j] * r / (p.weight(j) * equal)
			}
		}
	}
	return a
}

// perSteps values a rate by the steps left: the reciprocal of the time to go, times a
// factor.
func (p Problem) perSteps(factor func(j int) float64) [][]float64 {
	a := make([][]float64, len(p.Rate))
	for j, rates := range p.Rate {
		a[j] = make([]float64, len(rates))
		for k, r := range rates {
			a[j][k] = r / max(p.Steps[j], 1e-9) * factor(j)
		}
	}
	return a
}

// agnostic is max-min where all types count the same, whatever the rates. Then only
// a job's whole time matters; of all ways to compose it each takes the types in
// proportion to what there is of them.
func (p Problem) agnostic() Shares {
	low, high := 0.0, p.devices() // of the level g_j/w_j * time_j
	needs := func(level float64) (sum float64) {
		for j, g := range p.Gang {
			sum += g * min(1, level*p.weight(j)/g)
		}
		return sum
	}
	for j, g := range p.Gang {
		high = max(high, g/p.weight(j))
	}
	if needs(high) > p.devices() {
		for range 200 {
			if mid := (low + high) / 2; needs(mid) > p.devices() {
				high = mid
			} else {
				low = mid
			}
		}
		high = low
	}
	s := Shares{X: make([][]float64, len(p.Rate)), Objective: math.Inf(1)}
	for j, g := range p.Gang {
		s.X[j] = make([]float64, len(p.Room))
		time := min(1, high*p.weight(j)/g)
		s.Objective = min(s.Objective, time*g/p.weight(j))
		for k, w := range p.Room {
			s.X[j][k] = time * w / p.devices()
		}
	}
	return s
}

// isolated is the time a job would take from its start to its end on an n-th of the
// cluster, as the cluster is shared now.
func (p Problem) isolated(j int) float64 {
	part := 1 / max(float64(len(p.Rate))*p.Gang[j], p.devices())
	rate := 0.0
	for k, r := range p.Rate[j] {
		rate += float64(r * p.Room[k] * part)
	}
	return (p.Done[j] + p.Steps[j]) / rate
}

// finish makes the worst ratio of finishing times, shared over isolated, as small as
// possible. That a ratio of rho is kept means a rate of steps / (rho isolated - age);
// so at a given rho the division that exceeds all of these by the largest factor has
// a ratio no worse than rho, and from there we go on until it stays.
func (p Problem) finish(f filler) (Shares, error) {
	isolated := make([]float64, len(p.Rate))
	rho := 0.0
	for j := range p.Rate {
		isolated[j] = p.isolated(j)
		// An n-th of the cluster from now on is a division, so its ratio is one to start at.
		rest := isolated[j] * p.Steps[j] / (p.Done[j] + p.Steps[j])
		rho = max(rho, (p.AgeSec[j]+rest)/isolated[j])
	}
	value := func() [][]float64 {
		return p.perSteps(func(j int) float64 { return float64(rho*isolated[j]) - p.AgeSec[j] })
	}
	for range 60 {
		x, _, err := f(p, value(), false)
		if err != nil {
			return Shares{}, err
		}
		worst := 0.0
		for j, rates := range p.Rate {
			worst = max(worst, (p.AgeSec[j]+p.Steps[j]/dot(rates, x[j]))/isolated[j])
		}
		if worst >= rho*(1-1e-10) {
			break
		}
		rho = worst
	}
	x, _, err := f(p, value(), true)
	return Shares{x, rho}, err
}

func dot(a, x []float64) (sum float64) {
	for k := range a {
		sum += float64(a[k] * x[k])
	}
	return sum
}

// frame is the linear program all policies share: parts of time that are not negative
// and add up to 1 at most, on no more devices than there are.
func (p Problem) frame() (*solve.Problem, [][]int) {
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
			used[k] = append(used[k], solve.Term{Var: at[j][k], Coef: p.Gang[j]})
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
func fill(p Problem, a [][]float64, refine bool) ([][]float64, float64, error) {
	_, unit, err := pour(p, a, false) // near the level we look for, which is good for the figures
	if err != nil {
		return nil, 0, err
	}
	f := filling{p: p, a: a, floor: make([]float64, len(a)), unit: unit}
	for j := range a {
		f.floor[j] = -1
		if f.cap = append(f.cap, slices.Max(a[j])); f.cap[j] > 0 {
			f.free++
		} else {
			f.floor[j], f.cap[j] = 0, 1 // it cannot run and must not hold the level at 0
		}
	}
	first := 0.0
	for f.free > 0 {
		level, err := f.raise()
		if err != nil {
			return nil, 0, err
		}
		if first == 0 {
			first = level
		}
		if !refine {
			return f.x, first, nil
		}
	}
	lp, at := p.frame()
	for j, vars := range at {
		lp.Row(f.floor[j]-slack, solve.Inf, f.value(j, vars)...)
		for k, v := range vars {
			lp.Cost(v, p.Gang[j]*taste(j*len(vars)+k))
		}
	}
	s, err := solved(lp)
	if err != nil {
		return nil, 0, err
	}
	return p.parts(s.X, at), first, nil
}

// filling is where fill has got to.
type filling struct {
	p     Problem
	a     [][]float64
	cap   []float64 // the best value each job can have; rows are in parts of it
	floor []float64 // what fixed jobs have, in parts of cap; -1 is free
	free  int
	unit  float64 // of the level, so that it is about 1 in the program
	x     [][]float64
}

// slack is what a fixed value gives way, so that rounding does not make the next
// program infeasible.
const slack = 1e-9

// taste makes one of equally good divisions the best: a price of 1 to 1.5, by no rule
// that a program could share.
func taste(i int) float64 {
	_, part := math.Modf(float64(i+1) * math.Phi)
	return 1 + part/2
}

func (f *filling) value(j int, vars []int) []solve.Term {
	terms := make([]solve.Term, len(vars), len(vars)+1)
	for k, v := range vars {
		terms[k] = solve.Term{Var: v, Coef: f.a[j][k] / f.cap[j]}
	}
	return terms
}

// raise solves one program: the level the free jobs can reach while the others keep
// theirs. It fixes those that hold it and returns it.
func (f *filling) raise() (float64, error) {
	lp, at := f.p.frame()
	lp.Maximise = true
	least := lp.Var(0, solve.Inf, 1)
	rows := make([]int, len(at))
	for j, vars := range at {
		if f.floor[j] >= 0 {
			rows[j] = lp.Row(f.floor[j]-slack, solve.Inf, f.value(j, vars)...)
		} else {
			rows[j] = lp.Row(0, solve.Inf, append(f.value(j, vars), solve.Term{Var: least, Coef: -f.unit / f.cap[j]})...)
		}
	}
	s, err := solved(lp)
	if err != nil {
		return 0, err
	}
	f.x = f.p.parts(s.X, at)
	level, before := s.Objective*f.unit, f.free
	for j := range at {
		has := dot(f.a[j], f.x[j]) / f.cap[j]
		switch {
		case f.floor[j] >= 0:
			f.floor[j] = min(f.floor[j], has) // has is less by rounding at most
		case math.Abs(s.Dual[rows[j]])*f.unit/f.cap[j] > 1e-7:
			f.floor[j] = min(level/f.cap[j], has)
			f.free--
		}
	}
	if f.free == before {
		return 0, errors.New("max-min: nobody holds the level")
	}
	f.unit = level
	return level, nil
}

func solved(lp *solve.Problem) (solve.Solution, error) {
	s, err := solve.Solve(lp, solve.Budget{})
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

// cost is the most steps per second and price. Deadlines are kept as rates; where
// they cannot all be kept none is.
func cost(p Problem) (Shares, error) {
	worth := func(lp *solve.Problem, at [][]int) {
		lp.Maximise = true
		for j, vars := range at {
			for k, v := range vars {
				// The taste is far below any difference of prices that matters.
				lp.Cost(v, p.Rate[j][k]/p.price(k)*(1-1e-7*taste(j*len(vars)+k)))
			}
		}
	}
	lp, at := p.frame()
	worth(lp, at)
	for j := range p.SLOSec {
		if p.SLOSec[j] <= 0 {
			continue
		}
		terms := make([]solve.Term, len(at[j]))
		for k, v := range at[j] {
			terms[k] = solve.Term{Var: v, Coef: p.Rate[j][k]}
		}
		lp.Row(p.Steps[j]/p.SLOSec[j], solve.Inf, terms...)
	}
	s, err := solve.Solve(lp, solve.Budget{})
	if err == nil && s.Status == solve.Infeasible {
		lp, at = p.frame()
		worth(lp, at)
		s, err = solved(lp)
	}
	if err != nil {
		return Shares{}, err
	}
	if s.Status != solve.Optimal {
		return Shares{}, fmt.Errorf("the program is %s", s.Status)
	}
	return p.valued(p.parts(s.X, at)), nil
}

func (p Problem) price(k int) float64 {
	if p.Price == nil {
		return 1
	}
	return p.Price[k]
}

// valued adds the cost policy's objective to a division.
func (p Problem) valued(x [][]float64) Shares {
	s := Shares{X: x}
	for j, parts := range x {
		for k, part := range parts {
			s.Objective += part * p.Rate[j][k] / p.price(k)
		}
	}
	return s
}
