package assign

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPath: no way through up to seven places is shorter.
func TestPath(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		n := 1 + rng.IntN(7)
		cost := make([][]float64, n)
		for i := range cost {
			cost[i] = make([]float64, n)
			for j := range i {
				cost[i][j] = float64(1 + rng.IntN(50))
				cost[j][i] = cost[i][j]
			}
		}
		best, seen := math.Inf(1), make([]bool, n)
		var all func(at, left int, length float64)
		all = func(at, left int, length float64) {
			if left == 0 {
				best = min(best, length)
			}
			for to := range n {
				if !seen[to] {
					seen[to] = true
					step := 0.0
					if at >= 0 {
						step = cost[at][to]
					}
					all(to, left-1, length+step)
					seen[to] = false
				}
			}
		}
		all(-1, n, 0)
		got, order := Path(cost)
		length := 0.0
		for i := 1; i < n; i++ {
			length += cost[order[i-1]][order[i]]
		}
		if got != best || length != best || len(order) != n {
			t.Fatalf("%v: %g by %v, which is %g long; trying all finds %g", cost, got, order, length, best)
		}
	}
}
