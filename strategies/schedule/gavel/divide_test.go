package gavel

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/mechanism/solve"
)

func divided(t testing.TB, p Problem) Shares {
	t.Helper()
	s, err := Divide(p)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, p, s.X)
	return s
}

// holds checks that a division is one.
func holds(t testing.TB, p Problem, x [][]float64) {
	t.Helper()
	used := make([]float64, len(p.Room))
	for j := range x {
		if sum(x[j]) > 1+1e-6 {
			t.Fatalf("job %d has %g of its time", j, sum(x[j]))
		}
		for k := range used {
			used[k] += p.Gang[j] * x[j][k]
			if x[j][k] < 0 || x[j][k] > 1e-9 && p.Policy != Agnostic && p.Rate[j][k] == 0 {
				t.Fatalf("job %d has %g of type %d, where its rate is %g", j, x[j][k], k, p.Rate[j][k])
			}
		}
	}
	for k, w := range p.Room {
		if used[k] > w*(1+1e-6) {
			t.Fatalf("type %d: %g of %g devices", k, used[k], w)
		}
	}
}

func TestPaper(t *testing.T) {
	s := divided(t, example())
	if math.Abs(s.Objective-12.0/11) > 1e-6 {
		t.Errorf("the least ratio is %.7f, want 12/11", s.Objective)
	}
	want := [][]float64{{5. / 11, 0}, {5. / 11, 1. / 11}, {1. / 11, 10. / 11}}
	for j := range want {
		for k := range want[j] {
			if math.Abs(s.X[j][k]-want[j][k]) > 1e-6 {
				t.Errorf("X = %.6f, want %.6f", s.X, want)
				return
			}
		}
	}
}

// TestPaperRounds: after 200 rounds every job has had what it should, within 2 % of
// the time.
func TestPaperRounds(t *testing.T) {
	p := example()
	s := divided(t, p)
	r := Round{X: s.X, Got: p.nothing(), Deficit: p.nothing(), Credit: .5, Rate: p.Rate, Gang: []int{1, 1, 1}, Room: []int{1, 1}, Turn: []int{0, 1}}
	for range 200 {
		for j, k := range r.Assign() {
			if k >= 0 {
				r.Got[j][k]++
			}
		}
	}
	for j := range s.X {
		for k := range s.X[j] {
			if got := r.Got[j][k] / 200; math.Abs(got-s.X[j][k]) > .02 {
				t.Errorf("job %d had %.3f of type %d, want %.3f", j, got, k, s.X[j][k])
			}
		}
	}
}

// draw makes a small problem, with alike jobs and rates of 0 among the others.
func draw(r *rand.Rand, policy string) Problem {
	p := Problem{Policy: policy, Room: []float64{float64(1 + r.IntN(4)), float64(1 + r.IntN(4)), float64(1 + r.IntN(4))}}
	for range 1 + r.IntN(7) {
		if n := len(p.Rate); n > 0 && r.IntN(4) == 0 {
			p.Rate, p.Gang = append(p.Rate, p.Rate[n-1]), append(p.Gang, p.Gang[n-1])
		} else {
			slow := 1 + 3*r.Float64()
			p.Rate = append(p.Rate, []float64{slow * (1 + 5*r.Float64()), slow * (1 + r.Float64()), slow * float64(r.IntN(2))})
			p.Gang = append(p.Gang, float64(1+r.IntN(int(max(p.Room[0], p.Room[1])))))
		}
		p.Steps, p.Done = append(p.Steps, 100+1000*r.Float64()), append(p.Done, 500*r.Float64())
		p.AgeSec, p.SLOSec = append(p.AgeSec, 500*r.Float64()), append(p.SLOSec, 0)
	}
	return p
}

// TestFillIsLexicographic: no job can have more unless one that has no more than it has
// less; and the order in which jobs come does not matter.
func TestFillIsLexicographic(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 10 {
		p := draw(r, MaxMin)
		a := p.normalised()
		s := divided(t, p)
		values := make([]float64, len(a))
		for j := range a {
			values[j] = dot(a[j], s.X[j])
		}
		each := make([]float64, len(a))
		for j := range each {
			each[j] = 1
		}
		for j := range a {
			lp, at := p.frame(each)
			lp.Maximise = true
			for i, vars := range at {
				terms := make([]solve.Term, len(vars))
				for k, v := range vars {
					terms[k] = solve.Term{Var: v, Coef: a[i][k]}
					if i == j {
						lp.Cost(v, a[i][k])
					}
				}
				if i != j && values[i] <= values[j]*(1+1e-6) {
					lp.Row(values[i]*(1-1e-9), solve.Inf, terms...)
				}
			}
			if best, err := alone(lp); err != nil || best.Objective > values[j]*(1+1e-5)+1e-9 {
				t.Fatalf("job %d has %g and could have %g: %+v %v", j, values[j], best.Objective, p, err)
			}
		}
		slices.Reverse(p.Rate)
		slices.Reverse(p.Gang)
		back := divided(t, p)
		for j := range a {
			i := len(a) - 1 - j
			if v := dot(a[j], back.X[i]); math.Abs(v-values[j]) > 1e-6*(1+v) {
				t.Fatalf("job %d has %g, and %g in the other order: %+v", j, values[j], v, p)
			}
		}
	}
}

// alone solves a program by a solver of its own.
func alone(lp *solve.Problem) (solve.Solution, error) {
	var by solve.Solver
	defer by.Close()
	return solved(&by, lp)
}

// TestFinish: no smaller ratio than the one found can be kept, by a search of its own.
func TestFinish(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 6 {
		p := draw(r, FinishTimeFairest)
		s := divided(t, p)
		feasible := func(rho float64) bool {
			each := make([]float64, len(p.Rate))
			for j := range each {
				each[j] = 1
			}
			lp, at := p.frame(each)
			for j, vars := range at {
				time := rho*p.isolated(j) - p.AgeSec[j]
				if time <= 0 {
					return false
				}
				terms := make([]solve.Term, len(vars))
				for k, v := range vars {
					terms[k] = solve.Term{Var: v, Coef: p.Rate[j][k]}
				}
				lp.Row(p.Steps[j]/time, solve.Inf, terms...)
			}
			_, err := alone(lp)
			return err == nil
		}
		if !feasible(s.Objective*(1+1e-6)) || feasible(s.Objective*(1-1e-5)) {
			t.Fatalf("ratio %g: can be kept %t, can be bettered %t: %+v", s.Objective, feasible(s.Objective*(1+1e-6)), feasible(s.Objective*(1-1e-5)), p)
		}
	}
}

// TestCost: a deadline moves the job that has it to where it is kept; deadlines that
// cannot be kept are dropped.
func TestCost(t *testing.T) {
	p := Problem{Policy: Cost, Rate: [][]float64{{4, 1}, {4, 2}}, Gang: []float64{1, 1}, Room: []float64{1, 1}, Price: []float64{2, 1},
		Steps: []float64{100, 100}}
	for _, c := range []struct {
		slo  []float64
		want [][]float64
		cost float64
	}{
		{nil, [][]float64{{1, 0}, {0, 1}}, 4},
		{[]float64{0, 100. / 3}, [][]float64{{.5, .5}, {.5, .5}}, 3.5},
		{[]float64{0, 1}, [][]float64{{1, 0}, {0, 1}}, 4},
	} {
		p.SLOSec = c.slo
		s := divided(t, p)
		for j := range c.want {
			for k := range c.want[j] {
				if math.Abs(s.X[j][k]-c.want[j][k]) > 1e-6 || math.Abs(s.Objective-c.cost) > 1e-6 {
					t.Errorf("deadlines %v: got %.4f for %.4f, want %v for %g", c.slo, s.X, s.Objective, c.want, c.cost)
				}
			}
		}
	}
}

// TestTwins: the greedy twin divides legally and never beats the program; both give the
// same answer to the same question.
func TestTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, policy := range Policies {
		gaps, n := 0.0, 8
		for range n {
			p := draw(r, policy)
			s := divided(t, p)
			if !reflect.DeepEqual(s, divided(t, p)) {
				t.Fatalf("%s: two answers", policy)
			}
			g := greedy(t, p)
			twin, best := g.Objective, s.Objective
			if policy == Makespan || policy == FinishTimeFairest {
				twin, best = -twin, -best
			}
			if twin > best+1e-6*math.Abs(best) {
				t.Fatalf("%s: the twin has %g, the program %g: %+v", policy, g.Objective, s.Objective, p)
			}
			gaps += solve.Gap(twin, best) / float64(n)
		}
		t.Logf("%s: the twin's mean gap is %.3f", policy, gaps)
		if gaps > .5 {
			t.Errorf("%s: the twin's mean gap is %.3f", policy, gaps)
		}
	}
}

// TestNowhere: a job that can run nowhere gets nothing and is in nobody's way.
func TestNowhere(t *testing.T) {
	for _, policy := range []string{MaxMin, Makespan, FinishTimeFairest, Cost} {
		p := Problem{Policy: policy, Rate: [][]float64{{2, 1}, {0, 0}, {3, 3}, {1, 2}}, Gang: []float64{1, 1, 5, 1}, Room: []float64{1, 1},
			Steps: []float64{10, 10, 10, 10}, Done: []float64{0, 0, 0, 0}, AgeSec: []float64{1, 1, 1, 1}}
		for name, x := range map[string][][]float64{"program": divided(t, p).X, "twin": greedy(t, p).X} {
			if sum(x[1])+sum(x[2]) > 0 || math.Abs(x[0][0]-1) > 1e-6 || math.Abs(x[3][1]-1) > 1e-6 {
				t.Errorf("%s, %s: %v", policy, name, x)
			}
		}
	}
}

func greedy(t testing.TB, p Problem) Shares {
	t.Helper()
	g, err := Greedy(p)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, p, g.X)
	return g
}

// TestAssignIsLegal: no type is given out twice, and nobody waits for whom there is room.
func TestAssignIsLegal(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		types := rapid.IntRange(1, 3).Draw(t, "types")
		r := Round{Credit: .5}
		for k := range types {
			r.Room, r.Turn = append(r.Room, rapid.IntRange(0, 6).Draw(t, "room")), append(r.Turn, k)
		}
		for range rapid.IntRange(0, 8).Draw(t, "jobs") {
			row := func(what string, most int) []float64 {
				xs := make([]float64, types)
				for k := range xs {
					xs[k] = float64(rapid.IntRange(0, most).Draw(t, what))
				}
				return xs
			}
			r.Rate, r.X, r.Got, r.Deficit = append(r.Rate, row("rate", 2)), append(r.X, row("share", 1)), append(r.Got, row("got", 5)), append(r.Deficit, row("deficit", 2))
			r.Gang = append(r.Gang, rapid.IntRange(1, 4).Draw(t, "gang"))
		}
		left := slices.Clone(r.Room)
		got := r.Assign()
		for j, k := range got {
			if k >= 0 {
				if left[k] -= r.Gang[j]; left[k] < 0 || r.Rate[j][k] == 0 {
					t.Fatalf("%v of %v is not legal", got, r)
				}
			}
		}
		for j, k := range got {
			for l, room := range left {
				if k < 0 && r.Rate[j][l] > 0 && r.Gang[j] <= room {
					t.Fatalf("job %d waits, and type %d has room: %v of %v", j, l, got, r)
				}
			}
		}
	})
}
