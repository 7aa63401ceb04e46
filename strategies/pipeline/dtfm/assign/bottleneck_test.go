package assign

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBottleneck: no pairing of up to six has a smaller greatest cost.
func TestBottleneck(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		n := 1 + rng.IntN(6)
		cost := make([][]float64, n)
		for i := range cost {
			for range n {
				cost[i] = append(cost[i], float64(rng.IntN(20)))
			}
		}
		best, taken := math.Inf(1), make([]bool, n)
		var all func(r int, greatest float64)
		all = func(r int, greatest float64) {
			if r == n {
				best = min(best, greatest)
				return
			}
			for c := range n {
				if !taken[c] {
					taken[c] = true
					all(r+1, max(greatest, cost[r][c]))
					taken[c] = false
				}
			}
		}
		all(0, 0)
		got, column := Bottleneck(cost)
		seen, greatest := make([]bool, n), 0.0
		for r, c := range column {
			if seen[c] {
				t.Fatalf("column %d twice in %v", c, column)
			}
			seen[c], greatest = true, max(greatest, cost[r][c])
		}
		if got != best || greatest != best {
			t.Fatalf("%v: %g by %v, which costs %g; trying all finds %g", cost, got, column, greatest, best)
		}
	}
}
