package solve_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/musterdl/muster/mechanism/solve"
)

// TestMain keeps the compiled solver among the user's caches: compiling it is what
// takes longest in these tests.
func TestMain(m *testing.M) {
	if dir, err := os.UserCacheDir(); err == nil {
		solve.Cache(filepath.Join(dir, "muster", "solve"))
	}
	os.Exit(m.Run())
}

// TestWasm: the embedded solver is the one the README names.
func TestWasm(t *testing.T) {
	b, err := os.ReadFile("highs/highs.wasm")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:]); got != "528be4365bea1d4188988646b244263f50320df55782e14d6af5bce7cd45c840" {
		t.Errorf("highs.wasm has the sum %s", got)
	}
}

func answer(t testing.TB, p *solve.Problem, b solve.Budget) solve.Solution {
	t.Helper()
	s, err := solve.Solve(p, b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(b)) }

func TestSmall(t *testing.T) {
	p := &solve.Problem{Maximise: true}
	x, y := p.Var(0, solve.Inf, 3), p.Var(0, solve.Inf, 2)
	p.Row(-solve.Inf, 4, solve.Term{Var: x, Coef: 1}, solve.Term{Var: y, Coef: 1})
	p.Row(-solve.Inf, 6, solve.Term{Var: y, Coef: 2}, solve.Term{Var: x, Coef: 1}, solve.Term{Var: y, Coef: 1})
	s := answer(t, p, solve.Budget{})
	if s.Status != solve.Optimal || !near(s.Objective, 12) || !near(s.X[x], 4) || !near(s.Dual[0], 3) || s.Gap != 0 || s.Work.Pivots == 0 {
		t.Errorf("got %+v, want 4 of the first, a price of 3 and some pivots", s)
	}
	p.Cost(y, 4)
	p.Bound(x, 0, 1.5)
	p.Row(3, 3, solve.Term{Var: y, Coef: 3}, solve.Term{Var: x, Coef: 1})
	if s = answer(t, p, solve.Budget{}); !near(s.X[x], 1.5) || !near(s.X[y], .5) || !near(s.Objective, 6.5) {
		t.Errorf("after changes: got %+v, want 1.5 and 0.5", s)
	}
}

func TestStatuses(t *testing.T) {
	infeasible := &solve.Problem{}
	v := infeasible.Var(0, 1, 1)
	infeasible.Row(2, solve.Inf, solve.Term{Var: v, Coef: 1})
	unbounded := &solve.Problem{Maximise: true}
	unbounded.Var(0, solve.Inf, 1)
	crossed := &solve.Problem{}
	crossed.Var(1, 0, 1)
	hollow := &solve.Problem{}
	hollow.Row(1, 1)
	for _, c := range []struct {
		name string
		p    *solve.Problem
		want solve.Status
	}{{"infeasible", infeasible, solve.Infeasible}, {"unbounded", unbounded, solve.Unbounded}, {"crossed", crossed, solve.Infeasible},
		{"hollow", hollow, solve.Infeasible}, {"empty", &solve.Problem{}, solve.Optimal}} {
		if s := answer(t, c.p, solve.Budget{}); s.Status != c.want {
			t.Errorf("%s: got %s, want %s", c.name, s.Status, c.want)
		}
	}
	bad := &solve.Problem{}
	bad.Row(0, 1, solve.Term{Var: 3, Coef: 1})
	if _, err := solve.Solve(bad, solve.Budget{}); err == nil {
		t.Error("a row over a variable that is not there was taken")
	}
}

// market is a small hard integer program: equal sums over many items.
func market(seed uint64, rows, items int) *solve.Problem {
	r := rand.New(rand.NewPCG(seed, 7))
	p := &solve.Problem{}
	terms := make([][]solve.Term, rows)
	sums := make([]float64, rows)
	for range items {
		v := p.Whole(0, 1, 0)
		for i := range rows {
			w := float64(r.IntN(100))
			terms[i], sums[i] = append(terms[i], solve.Term{Var: v, Coef: w}), sums[i]+w
		}
	}
	for i := range rows {
		over, under := p.Var(0, solve.Inf, 1), p.Var(0, solve.Inf, 1)
		half := math.Floor(sums[i] / 2)
		p.Row(half, half, append(terms[i], solve.Term{Var: over, Coef: -1}, solve.Term{Var: under, Coef: 1})...)
	}
	return p
}

// TestBudget: a budget ends a search early, with the same answer every time, and the
// bound holds.
func TestBudget(t *testing.T) {
	p := market(1, 3, 15)
	early, again := answer(t, p, solve.Budget{Nodes: 5}), answer(t, p, solve.Budget{Nodes: 5})
	if !reflect.DeepEqual(early, again) {
		t.Errorf("two answers to one question: %+v and %+v", early, again)
	}
	full := answer(t, p, solve.Budget{Nodes: 1_000_000})
	if full.Status != solve.Optimal {
		t.Fatalf("with a million nodes: %+v", full)
	}
	if early.Status != solve.Feasible || early.Work.Nodes > 50 || full.Work.Nodes <= early.Work.Nodes {
		t.Errorf("early %s after %d nodes, full after %d", early.Status, early.Work.Nodes, full.Work.Nodes)
	}
	if early.Bound > full.Objective+1e-6 || early.Objective < full.Objective-1e-6 || early.Gap <= 0 {
		t.Errorf("early %g, bound %g, gap %g; the optimum is %g", early.Objective, early.Bound, early.Gap, full.Objective)
	}
	r := rand.New(rand.NewPCG(3, 3))
	long := random(r, 30, 30)
	if s := answer(t, long.problem(), solve.Budget{Pivots: 1}); s.Status != solve.Exhausted && s.Status != solve.Feasible {
		t.Errorf("after one pivot: %s", s.Status)
	}
}

// TestAtOnce: several may solve at the same time, and get what one gets alone.
func TestAtOnce(t *testing.T) {
	alone := answer(t, market(2, 2, 10), solve.Budget{})
	answers := make([]solve.Solution, 4)
	var wait sync.WaitGroup
	for i := range answers {
		wait.Go(func() { answers[i], _ = solve.Solve(market(2, 2, 10), solve.Budget{}) })
	}
	wait.Wait()
	for _, s := range answers {
		if !reflect.DeepEqual(s, alone) {
			t.Errorf("at once %+v, alone %+v", s, alone)
		}
	}
}

// TestOneAfterAnother: a problem has the same answer, to the last bit, whatever the solver
// has answered before.
func TestOneAfterAnother(t *testing.T) {
	var by solve.Solver
	defer by.Close()
	r := rand.New(rand.NewPCG(4, 4))
	for i := range rounds(40, 400) {
		d := random(r, 1+r.IntN(30), 1+r.IntN(20))
		d.whole = r.IntN(4) == 0
		alone := answer(t, d.problem(), solve.Budget{})
		if after, err := by.Solve(d.problem(), solve.Budget{}); err != nil || !reflect.DeepEqual(after, alone) {
			t.Fatalf("problem %d: %v, %+v, and alone %+v", i, err, after, alone)
		}
	}
}

// dense is max cost x, a x <= b, 0 <= x <= upper.
type dense struct {
	cost, b, upper []float64
	a              [][]float64
	whole          bool
}

// random draws a program that 0 satisfies; its figures are small and whole, so that
// ties and degenerate corners are common.
func random(r *rand.Rand, vars, rows int) dense {
	d := dense{}
	for range vars {
		d.cost = append(d.cost, float64(r.IntN(10)-2))
		d.upper = append(d.upper, float64(r.IntN(4)))
	}
	for range rows {
		d.b = append(d.b, float64(r.IntN(8)))
		row := make([]float64, vars)
		for j := range row {
			if r.IntN(3) > 0 {
				row[j] = float64(r.IntN(7) - 2)
			}
		}
		d.a = append(d.a, row)
	}
	return d
}

func (d dense) problem() *solve.Problem {
	p := &solve.Problem{Maximise: true}
	for j := range d.cost {
		if d.whole {
			p.Whole(0, d.upper[j], d.cost[j])
		} else {
			p.Var(0, d.upper[j], d.cost[j])
		}
	}
	for i := range d.a {
		var terms []solve.Term
		for j, c := range d.a[i] {
			if c != 0 {
				terms = append(terms, solve.Term{Var: j, Coef: c})
			}
		}
		p.Row(-solve.Inf, d.b[i], terms...)
	}
	return p
}

// holds checks an answer's bounds, rows and sum.
func (d dense) holds(s solve.Solution) bool {
	sum := 0.0
	for j, x := range s.X {
		sum += d.cost[j] * x
		if x < -1e-6 || x > d.upper[j]+1e-6 || d.whole && x != math.Round(x) {
			return false
		}
	}
	for i := range d.a {
		left := 0.0
		for j, x := range s.X {
			left += d.a[i][j] * x
		}
		if left > d.b[i]+1e-6 {
			return false
		}
	}
	return near(sum, s.Objective)
}

// simplex solves the program with gonum, in standard form.
func (d dense) simplex(t *testing.T) (float64, bool) {
	n, m := len(d.cost), len(d.a)
	a := mat.NewDense(m+n, n+m+n, nil)
	c, b := make([]float64, n+m+n), make([]float64, m+n)
	for i := range m {
		for j := range n {
			a.Set(i, j, d.a[i][j])
		}
		a.Set(i, n+i, 1)
		b[i] = d.b[i]
	}
	for j := range n {
		a.Set(m+j, j, 1)
		a.Set(m+j, n+m+j, 1)
		b[m+j] = d.upper[j]
		c[j] = -d.cost[j]
	}
	z, _, err := lp.Simplex(c, a, b, 1e-10, nil)
	if err != nil { // it gives up on some degenerate programs
		t.Logf("gonum: %v", err)
		return 0, false
	}
	return -z, true
}

func rounds(short, long int) int {
	if os.Getenv("MUSTER_LONG") == "1" {
		return long
	}
	return short
}

func TestLinearAgainstGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	compared, n := 0, rounds(100, 3000)
	for k := range n {
		d := random(r, 1+r.IntN(8), 1+r.IntN(8))
		s := answer(t, d.problem(), solve.Budget{})
		if s.Status != solve.Optimal || !d.holds(s) {
			t.Fatalf("program %d: %+v does not hold in %+v", k, s, d)
		}
		want, ok := d.simplex(t)
		if ok && !near(s.Objective, want) {
			t.Fatalf("program %d: got %g, gonum has %g: %+v", k, s.Objective, want, d)
		}
		if ok {
			compared++
		}
	}
	if compared < n/2 {
		t.Errorf("gonum solved %d of %d only", compared, n)
	}
}

// best tries all whole points.
func (d dense) best() float64 {
	x, best := make([]float64, len(d.cost)), 0.0
	var try func(j int, sum float64)
	try = func(j int, sum float64) {
		if j < len(x) {
			for x[j] = 0; x[j] <= d.upper[j]; x[j]++ {
				try(j+1, sum+d.cost[j]*x[j])
			}
			x[j] = 0
			return
		}
		for i := range d.a {
			left := 0.0
			for k := range x {
				left += d.a[i][k] * x[k]
			}
			if left > d.b[i] {
				return
			}
		}
		best = max(best, sum)
	}
	try(0, 0)
	return best
}

func TestWholeAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for k := range rounds(60, 2000) {
		d := random(r, 1+r.IntN(6), 1+r.IntN(6))
		d.whole = true
		s := answer(t, d.problem(), solve.Budget{})
		if s.Status != solve.Optimal || !d.holds(s) || !near(s.Objective, d.best()) {
			t.Fatalf("program %d: got %+v, want %g: %+v", k, s, d.best(), d)
		}
	}
}

func TestGap(t *testing.T) {
	if got := solve.Gap(8, 10); !near(got, .25) || !math.IsInf(solve.Gap(0, 1), 1) || solve.Gap(0, 0) != 0 {
		t.Errorf("8 is %g from 10", got)
	}
}
