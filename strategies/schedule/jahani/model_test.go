package jahani

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/musterdl/muster/mechanism/solve"
)

// brute is the least cost of all plans.
func brute(p *Problem) float64 {
	plan := Plan{Rented: make([]int, p.Nodes), Jobs: make([]Choice, len(p.Jobs))}
	least := math.Inf(1)
	var jobs, nodes func(i int)
	jobs = func(i int) {
		if i == len(p.Jobs) {
			least = min(least, p.Cost(plan))
			return
		}
		plan.Jobs[i] = Choice{}
		jobs(i + 1)
		for n, m := range plan.Rented {
			if m == none {
				continue
			}
			for g := 1; g <= p.Machines[m].Devices; g++ {
				if !math.IsInf(p.seconds(i, m, g), 1) {
					plan.Jobs[i] = Choice{n, g}
					jobs(i + 1)
				}
			}
		}
	}
	nodes = func(n int) {
		if n == p.Nodes {
			jobs(0)
			return
		}
		for plan.Rented[n] = none; plan.Rented[n] < len(p.Machines); plan.Rented[n]++ {
			nodes(n + 1)
		}
	}
	nodes(0)
	return least
}

// near says that two costs are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(b)) }

// TestExactIsBruteForce: three jobs on two nodes that may be two machines each.
func TestExactIsBruteForce(t *testing.T) {
	seeds := uint64(4)
	if os.Getenv("MUSTER_LONG") == "1" {
		seeds = 40
	}
	for seed := range seeds {
		p := draw(seed, 3, 2, 2)
		p.Machines[1].Most = int(seed % 2)
		plan, proven, err := Exact(p, solve.Budget{})
		if err != nil || !proven {
			t.Fatalf("seed %d: proven %t, %v", seed, proven, err)
		}
		if want, got := brute(p), p.Cost(plan); !near(got, want) {
			t.Errorf("seed %d: the program's plan costs %.6f, the best %.6f", seed, got, want)
		}
		if want, got := brute(p), p.Cost(Search(p, Plan{})); got < want-1e-6 {
			t.Errorf("seed %d: the search found %.6f, less than the least, %.6f", seed, got, want)
		}
	}
}

// TestSearchIsNearExact: on problems the program can solve, the search is on average
// within a tenth of it.
func TestSearchIsNearExact(t *testing.T) {
	seeds := uint64(3)
	if os.Getenv("MUSTER_LONG") == "1" {
		seeds = 30
	}
	exact, search, worst := 0.0, 0.0, 0.0
	for seed := range seeds {
		p := draw(seed, 6, 3, 3)
		plan, proven, err := Exact(p, solve.Budget{Nodes: 20000})
		if err != nil || !proven {
			t.Fatalf("seed %d: proven %t, %v", seed, proven, err)
		}
		e, s := p.Cost(plan), p.Cost(Search(p, Plan{}))
		exact, search, worst = exact+e, search+s, max(worst, s/e-1)
		t.Logf("seed %d: %.4f, the search %.4f (%.3f)", seed, e, s, s/e)
	}
	t.Logf("the search costs %.4f of the program, at worst %.3f more", search/exact, worst)
	if search > 1.1*exact {
		t.Errorf("the search costs %.3f of the program, want at most 1.1", search/exact)
	}
}

// TestSearchScales: 400 jobs on 100 nodes within 5 s.
func TestSearchScales(t *testing.T) {
	p := draw(1, 400, 100, 3)
	p.Machines[0].Most, p.Machines[2].Most = 20, 60
	began := time.Now()
	plan := Search(p, Plan{})
	took := time.Since(began)
	running := 0
	for _, c := range plan.Jobs {
		if c.Devices > 0 {
			running++
		}
	}
	cost := p.Cost(plan)
	t.Logf("%v: %d of 400 jobs run, cost %.2f", took, running, cost)
	if took > 5*time.Second || math.IsInf(cost, 1) || running < 100 {
		t.Errorf("took %v, cost %.2f, %d jobs run", took, cost, running)
	}
}

// TestNodeIsGivenUp: with few machines of each kind, a node whose jobs have all the time
// there is costs nothing more once nobody is on it.
func TestNodeIsGivenUp(t *testing.T) {
	p := draw(2, 2, 2, 3)
	for m := range p.Machines {
		p.Machines[m].Most = 1
	}
	for j := range p.Jobs {
		p.Jobs[j].DueSec = 1e9
	}
	if plan := Search(p, Plan{Rented: []int{0, 2}, Jobs: []Choice{{0, 1}, {1, 4}}}); p.Cost(plan) != 0 {
		t.Errorf("%+v costs %.3f: postponing both costs nothing", plan, p.Cost(plan))
	}
}
