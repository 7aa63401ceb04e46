package gavel

import (
	"fmt"
	"math"

	"github.com/musterdl/muster/mechanism/solve"
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
			sum += float64(g * min(1, level*p.weight(j)/g))
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
	isolated, rho := make([]float64, len(p.Rate)), 0.0
	for j := range p.Rate {
		if len(p.choices(j, p.Rate[j])) > 0 { // else it takes no part
			isolated[j] = p.isolated(j)
			rho = max(rho, p.AgeSec[j]/isolated[j]+1)
		}
	}
	value := func() [][]float64 {
		return p.perSteps(func(j int) float64 { return max(0, float64(rho*isolated[j])-p.AgeSec[j]) })
	}
	for i := range 60 {
		x, _, err := f(p, value(), false)
		if err != nil {
			return Shares{}, err
		}
		worst := 0.0
		for j, rates := range p.Rate {
			if isolated[j] > 0 {
				worst = max(worst, (p.AgeSec[j]+p.Steps[j]/dot(rates, x[j]))/isolated[j])
			}
		}
		// The ratio we start at need not be one that can be kept; all later ones are.
		if i > 0 && worst >= rho*(1-1e-10) {
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
	each := make([]float64, len(p.Rate))
	for j := range each {
		each[j] = 1
	}
	lp, at := p.frame(each)
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
	var by solve.Solver
	defer by.Close()
	s, err := by.Solve(lp, solve.Budget{})
	if err == nil && s.Status == solve.Infeasible {
		lp, at = p.frame(each)
		worth(lp, at)
		s, err = solved(&by, lp)
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
			s.Objective += float64(part * p.Rate[j][k] / p.price(k))
		}
	}
	return s
}
