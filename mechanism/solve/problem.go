// Package solve is the thin door to optimisation: linear and mixed-integer programs,
// maximum-weight matching and the multiple-choice knapsack.
//
// Programs go to HiGHS, the open solver of the University of Edinburgh, which is
// better kept than anything of ours would be. It is embedded as WebAssembly and run
// by wazero inside the process: no C, no file, no clock (its clock stands still), a
// new instance for every problem. What it may spend is counted in work, never in
// seconds. So the same problem has the same answer, to the bit, on every machine.
//
// Left out: warm starts (an instance remembers nothing) and quadratic objectives.
// The first program of a process compiles the solver, which takes seconds unless the
// process has called Cache; every further one starts in two milliseconds. Matching and knapsack are our own
// lines, since they are a page each and need no such start.
package solve

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Problem is a linear program over bounded variables, some of which may have to be
// whole. The zero value is an empty one that minimises. A Problem may be changed and
// solved again.
type Problem struct {
	// Maximise turns the objective's sense.
	Maximise bool

	cost, lower, upper []float64
	whole              []bool
	anyWhole           bool
	rows               []row
}

type row struct {
	lower, upper float64
	terms        []Term // by variable, each once
}

// Term is a variable's part in a row.
type Term struct {
	Var  int
	Coef float64
}

// Inf is the bound of what is not bounded; the other side is -Inf.
var Inf = math.Inf(1)

// Var adds a variable and returns its index, counted from 0.
func (p *Problem) Var(lower, upper, cost float64) int {
	p.cost, p.lower, p.upper = append(p.cost, cost), append(p.lower, lower), append(p.upper, upper)
	p.whole = append(p.whole, false)
	return len(p.cost) - 1
}

// Whole adds a variable that takes whole values only.
func (p *Problem) Whole(lower, upper, cost float64) int {
	v := p.Var(lower, upper, cost)
	p.whole[v], p.anyWhole = true, true
	return v
}

// Row adds lower <= sum of terms <= upper and returns its index. Terms of the same
// variable add up.
func (p *Problem) Row(lower, upper float64, terms ...Term) int {
	sorted := slices.Clone(terms)
	slices.SortStableFunc(sorted, func(a, b Term) int { return cmp.Compare(a.Var, b.Var) })
	kept := sorted[:0]
	for _, t := range sorted {
		if n := len(kept); n > 0 && kept[n-1].Var == t.Var {
			kept[n-1].Coef += t.Coef
			continue
		}
		kept = append(kept, t)
	}
	p.rows = append(p.rows, row{lower, upper, kept})
	return len(p.rows) - 1
}

// Cost sets a variable's part in the objective.
func (p *Problem) Cost(v int, cost float64) { p.cost[v] = cost }

// Bound sets a variable's bounds.
func (p *Problem) Bound(v int, lower, upper float64) { p.lower[v], p.upper[v] = lower, upper }

// Budget is what a solution may spend, counted so that it is the same everywhere.
type Budget struct {
	// Pivots bounds the simplex iterations of a linear program; 0 is a million.
	Pivots int32
	// Nodes bounds the search tree of a mixed-integer program; 0 is ten thousand.
	Nodes int32
	// Gap is the relative gap to the bound at which the search is content; 0 wants
	// proof.
	Gap float64
}

// Work is what a solution did spend.
type Work struct{ Pivots, Nodes int64 }

// Status is how a solution ended.
type Status uint8

// The ways to end. A Feasible solution is valid, but the budget ended before it was
// shown to be within the gap; Exhausted means that it ended before there was one.
const (
	Exhausted Status = iota
	Optimal
	Feasible
	Infeasible
	Unbounded
)

// String names the status.
func (s Status) String() string {
	return [...]string{"exhausted", "optimal", "feasible", "infeasible", "unbounded"}[s]
}

// Solution is the answer to a Problem.
type Solution struct {
	Status Status
	// X are the variables' values; nil unless Optimal or Feasible. Whole variables
	// are exactly whole.
	X         []float64
	Objective float64
	// Dual are the rows' prices, for a linear program that is Optimal: what one unit
	// more of the row's binding bound adds to the objective.
	Dual []float64
	// Bound is what no solution can beat, Gap the distance of Objective from it
	// relative to Objective.
	Bound, Gap float64
	Work       Work
}

// Solve answers p by a Solver of its own.
func Solve(p *Problem, b Budget) (Solution, error) {
	var s Solver
	defer s.Close()
	return s.Solve(p, b)
}

// Solver answers problems one after another, each as if it were the only one: what it
// keeps is memory, whose making takes longer than a small problem. The zero Solver is
// ready; it is not safe for concurrent use, and is closed after its last problem.
type Solver struct{ h *instance }

// Close gives the memory back.
func (s *Solver) Close() {
	if s.h != nil {
		s.h.module.Close(s.h.ctx)
		s.h = nil
	}
}

// Solve answers p. An error means that p is no problem or the solver broke; that p has
// no solution is a Status.
func (s *Solver) Solve(p *Problem, b Budget) (Solution, error) {
	if err := p.check(); err != nil {
		return Solution{}, err
	}
	if p.contradicts() {
		return Solution{Status: Infeasible}, nil
	}
	if len(p.cost) == 0 {
		return Solution{Status: Optimal, X: []float64{}, Dual: make([]float64, len(p.rows))}, nil
	}
	a, err := s.run(p, b)
	if err != nil {
		return Solution{}, fmt.Errorf("solve %d variables, %d rows: %w", len(p.cost), len(p.rows), err)
	}
	if a.X == nil {
		return a, nil
	}
	for i, whole := range p.whole {
		if whole {
			a.X[i] = math.Round(a.X[i])
		}
	}
	a.Objective = 0
	for i, x := range a.X {
		a.Objective += float64(p.cost[i] * x)
	}
	if !p.anyWhole && a.Status == Optimal {
		a.Bound = a.Objective
	}
	a.Gap = Gap(a.Objective, a.Bound)
	return a, nil
}

// run answers p in memory that is there already, if there is any.
func (s *Solver) run(p *Problem, b Budget) (a Solution, err error) {
	if s.h == nil {
		if s.h, err = start(); err != nil {
			return Solution{}, err
		}
	}
	if a, err = s.h.run(p, b); err != nil {
		s.Close() // what broke is not used again
	}
	return a, err
}

func (p *Problem) check() error {
	for i := range p.cost {
		if math.IsNaN(p.cost[i]) || math.IsInf(p.cost[i], 0) || math.IsNaN(p.lower[i]) || math.IsNaN(p.upper[i]) {
			return fmt.Errorf("variable %d: cost %g, bounds %g to %g", i, p.cost[i], p.lower[i], p.upper[i])
		}
	}
	for i, r := range p.rows {
		if math.IsNaN(r.lower) || math.IsNaN(r.upper) {
			return fmt.Errorf("row %d: bounds %g to %g", i, r.lower, r.upper)
		}
		for _, t := range r.terms {
			if t.Var < 0 || t.Var >= len(p.cost) || math.IsNaN(t.Coef) || math.IsInf(t.Coef, 0) {
				return fmt.Errorf("row %d: %g times variable %d of %d", i, t.Coef, t.Var, len(p.cost))
			}
		}
	}
	return nil
}

// contradicts finds bounds that cross, and empty rows that 0 does not satisfy.
func (p *Problem) contradicts() bool {
	for i := range p.cost {
		if p.lower[i] > p.upper[i] {
			return true
		}
	}
	return slices.ContainsFunc(p.rows, func(r row) bool {
		return r.lower > r.upper || len(r.terms) == 0 && (r.lower > 0 || r.upper < 0)
	})
}
