package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// random makes up a problem: concave speedups that suffer from spanning nodes, and a
// legal base.
func random(rng *rand.Rand, jobs, nodes, room int) *Problem {
	p := &Problem{Base: NewMatrix(jobs, nodes), MostNodes: 16, Mingle: rng.IntN(4) == 0}
	for range nodes {
		p.Room = append(p.Room, 1+rng.IntN(room))
	}
	for range jobs {
		alpha, apart := .5+.5*rng.Float64(), .5+.5*rng.Float64()
		p.Jobs = append(p.Jobs, Job{Most: 1 + rng.IntN(nodes*room), Factor: rng.Float64(), Speedup: func(n, r int) float64 {
			s := math.Pow(float64(r), alpha)
			if n > 1 {
				s *= apart
			}
			return s
		}})
	}
	free := slices.Clone(p.Room)
	for j := range jobs {
		if n := rng.IntN(nodes); free[n] > 0 && rng.IntN(2) == 0 {
			k := min(1+rng.IntN(free[n]), p.Jobs[j].Most)
			p.Base.Row(j)[n] = uint8(k)
			free[n] -= k
		}
	}
	return p
}

// fault says what is illegal about a matrix.
func fault(p *Problem, m Matrix) string {
	used, spans := make([]int, len(p.Room)), make([]int, len(p.Room))
	for j := range p.Jobs {
		nodes, replicas := m.Size(j)
		if replicas > p.Jobs[j].Most {
			return "too many replicas"
		}
		if nodes > p.MostNodes {
			return "too many nodes"
		}
		for n, c := range m.Row(j) {
			used[n] += int(c)
			if c > 0 && nodes > 1 {
				spans[n]++
			}
			if c > 0 && p.Jobs[j].May != nil && !p.Jobs[j].May[n] {
				return "a node it may not use"
			}
		}
	}
	for n := range used {
		if used[n] > p.Room[n] {
			return "more than there is room for"
		}
		if spans[n] > 1 && !p.Mingle {
			return "two jobs on several nodes meet"
		}
	}
	return ""
}

// exhaustive is the best value over all legal matrices.
func exhaustive(p *Problem) float64 {
	m := NewMatrix(len(p.Jobs), len(p.Room))
	best := 0.0
	var fill func(j, n int)
	fill = func(j, n int) {
		if n == len(p.Room) {
			j, n = j+1, 0
		}
		if j == len(p.Jobs) {
			if fault(p, m) == "" {
				best = max(best, p.Value(m))
			}
			return
		}
		for c := range p.Room[n] + 1 {
			m.Row(j)[n] = uint8(c)
			fill(j, n+1)
		}
		m.Row(j)[n] = 0
	}
	fill(0, 0)
	return best
}

// TestExhaustive: on problems small enough to try everything, the genetic search finds
// the best, and the greedy one nearly always nearly so.
func TestExhaustive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	missed, sum, worst, tries := 0, 0.0, 1.0, 0
	for range 120 {
		p := random(rng, 1+rng.IntN(4), 1+rng.IntN(2), 2)
		if len(p.Jobs) < 4 {
			p = random(rng, len(p.Jobs), 1+rng.IntN(3), 2)
		}
		best := exhaustive(p)
		m, _ := Genetic(p, nil, Effort{Population: 40, Generations: 40}, 1)
		if why := fault(p, m); why != "" || p.Value(m) < best*(1-1e-9) {
			missed++
			t.Logf("genetic %v of %v, %s", p.Value(m), best, why)
		}
		g := Greedy(p)
		ratio := p.Value(g) / best
		if why := fault(p, g); why != "" || ratio > 1+1e-9 {
			t.Fatalf("greedy: %s, %v times the best", why, ratio)
		}
		sum, worst, tries = sum+ratio, min(worst, ratio), tries+1
	}
	t.Logf("of the best: greedy mean %.4f, worst %.3f; genetic missed %d of %d", sum/float64(tries), worst, missed, tries)
	if missed > 1 || sum/float64(tries) < .99 {
		t.Errorf("genetic missed %d of %d, greedy has %.4f of the best on average", missed, tries, sum/float64(tries))
	}
}

// TestLegal: both searches return legal matrices, no worse than the base, the same again,
// and nodes a job may not use stay without it.
func TestLegal(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		p := random(rng, 1+rng.IntN(20), 1+rng.IntN(20), 8)
		p.MostNodes = 1 + rng.IntN(16)
		for j := range p.Jobs {
			if rng.IntN(3) == 0 {
				p.Jobs[j].May = make([]bool, len(p.Room))
				for n := range p.Room {
					p.Jobs[j].May[n] = rng.IntN(2) == 0 || p.Base.Row(j)[n] > 0
				}
			}
		}
		effort := Effort{Population: 20, Generations: 20}
		a, population := Genetic(p, nil, effort, 7)
		b, _ := Genetic(p, nil, effort, 7)
		g := Greedy(p)
		for _, m := range append(population, g) {
			if why := fault(p, m); why != "" {
				t.Fatal(why)
			}
		}
		if !slices.Equal(a.cells, b.cells) || !slices.Equal(g.cells, Greedy(p).cells) {
			t.Fatal("the same again differs")
		}
		if base := p.Value(p.Base); p.Value(a) < base-1e-12 {
			t.Errorf("genetic %v, base %v", p.Value(a), base)
		}
	}
}

// TestSurvive checks fronts against their definition.
func TestFronts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		all := make([]individual, 30)
		for i := range all {
			all[i] = individual{value: float64(rng.IntN(8)), utilisation: float64(rng.IntN(8))}
		}
		slices.SortFunc(all, better)
		g := &genetic{}
		g.sortIntoFronts(all)
		beats := func(a, b individual) bool {
			return a.value >= b.value && a.utilisation >= b.utilisation && (a.value > b.value || a.utilisation > b.utilisation)
		}
		for _, x := range all {
			rank := 0 // one beyond the last front with one that beats it
			for _, y := range all {
				if beats(y, x) {
					rank = max(rank, y.rank+1)
				}
			}
			if x.rank != rank {
				t.Fatalf("rank %d, expected %d", x.rank, rank)
			}
		}
	}
}

// At the size where the strategy no longer waits for the genetic search.
func BenchmarkGreedy500(b *testing.B) {
	p := random(rand.New(rand.NewPCG(1, 1)), 500, 250, 8)
	for b.Loop() {
		Greedy(p)
	}
}

func BenchmarkGenetic20(b *testing.B) {
	p := random(rand.New(rand.NewPCG(1, 1)), 20, 16, 4)
	for b.Loop() {
		Genetic(p, nil, Patient(), 1)
	}
}
