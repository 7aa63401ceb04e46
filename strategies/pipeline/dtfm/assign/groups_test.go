package assign

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBruteForce: of six peers in three groups or in two the search finds the best in each of
// 1,000 cases, and its lines take what it says.
func TestBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		p := draw(rng, 6, 2+rng.IntN(2))
		a, want := p.Search(rng), brute(p)
		if a.Cost != want {
			t.Fatalf("%d groups: %g, trying all finds %g", p.Groups, a.Cost, want)
		}
		length := 0.0
		lines := p.Lines(a)
		for s := 1; s < p.Groups; s++ {
			slowest := 0.0
			for _, line := range lines {
				slowest = max(slowest, p.Send[line[s-1]][line[s]])
			}
			length += slowest
		}
		if _, sum := p.slowest(a.Group); math.Abs(sum+2*length-a.Cost) > 1e-9*a.Cost {
			t.Fatalf("the lines %v take %g, the search says %g", lines, sum+2*length, a.Cost)
		}
	}
}

func draw(rng *rand.Rand, n, groups int) *Peers {
	p := &Peers{Groups: groups}
	for range n {
		p.Sum, p.Send = append(p.Sum, make([]float64, n)), append(p.Send, make([]float64, n))
	}
	for i := range n {
		for j := range i {
			p.Sum[i][j], p.Send[i][j] = 1+99*rng.Float64(), 1+99*rng.Float64()
			p.Sum[j][i], p.Send[j][i] = p.Sum[i][j], p.Send[i][j]
		}
	}
	return p
}

// brute is the least cost of all assignments.
func brute(p *Peers) float64 {
	group, size, best := make([]int, len(p.Send)), make([]int, p.Groups), math.Inf(1)
	var place func(i int)
	place = func(i int) {
		if i == len(group) {
			best = min(best, p.cost(group))
			return
		}
		for g := range p.Groups {
			if size[g] < len(group)/p.Groups {
				size[g]++
				group[i] = g
				place(i + 1)
				size[g]--
			}
		}
	}
	place(0)
	return best
}
