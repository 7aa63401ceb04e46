package afs

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/allocate/divide"
)

// Measure is how often the pair rule prefers the longer of two jobs with equally many
// devices. The survey says that AFS does so when it expects contention; the rule
// expects nothing.
func Measure(seed uint64) map[string]float64 {
	const pairs, sigma = 20000, 1.5
	m := map[string]float64{}
	for _, n := range []float64{1, 2, 4, 8, 16} {
		rng, wins := rand.New(rand.NewPCG(seed, 2)), 0.
		for range pairs {
			var side [2]divide.Side
			b := [2]float64{.02 + .28*rng.Float64(), .02 + .28*rng.Float64()}
			for j := range side {
				rate := func(n float64) float64 { return n / (1 + b[j]*(n-1)) }
				side[j] = divide.Side{Left: math.Exp(sigma * rng.NormFloat64()), First: 1, Now: rate(n), More: rate(n + 1)}
			}
			short, long := side[0], side[1]
			if short.Left/short.Now > long.Left/long.Now {
				short, long = long, short
			}
			if !divide.First(short, long) {
				wins++
			}
		}
		m[fmt.Sprintf("longer_wins_at_%g", n)] = wins / pairs
	}
	return m
}
