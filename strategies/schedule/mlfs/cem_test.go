package mlfs

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The weights are searched without a gradient, by the cross-entropy method (de Boer et
// al., Annals of OR 2005): draw samples around a mean, keep the best few, move mean and
// spread towards them, and again. What a sample costs is a whole simulation. The mean
// itself is among the samples of every generation, so the search never loses what it
// started from. Left out: correlations between weights, which need more samples than we
// can afford.

// searchEffort is how long to search.
type searchEffort struct {
	samples     int // per generation, the mean included
	elites      int // of them, that the next generation is drawn around
	generations int
	spread      float64 // of the first generation, per weight
	least       float64 // spread that is kept, so that the search does not fall asleep
	seed        uint64
}

// searched is what a search came to.
type searched struct {
	best  []float64
	cost  float64   // of best, as it was measured
	curve []float64 // cost of the best sample of each generation
}

// sample is a vector and what it costs.
type sample struct {
	w    []float64
	cost float64
}

// crossEntropy looks for weights of small cost around start. cost is asked with the number
// of the generation, since each is measured on other cases; the best is the mean of the
// last one's elites, since costs of different generations do not compare.
func crossEntropy(start []float64, c searchEffort, cost func(w []float64, generation int) float64) searched {
	rng := rand.New(rand.NewPCG(c.seed, 3))
	mean, spread := slices.Clone(start), make([]float64, len(start))
	for i := range spread {
		spread[i] = c.spread
	}
	var f searched
	for g := range c.generations {
		all := []sample{{slices.Clone(mean), cost(mean, g)}}
		for len(all) < c.samples {
			w := make([]float64, len(mean))
			for i := range w {
				w[i] = mean[i] + spread[i]*rng.NormFloat64()
			}
			all = append(all, sample{w, cost(w, g)})
		}
		slices.SortStableFunc(all, func(a, b sample) int {
			if a.cost < b.cost {
				return -1
			}
			if a.cost > b.cost {
				return 1
			}
			return 0
		})
		f.curve = append(f.curve, all[0].cost)
		moveTo(mean, spread, all[:c.elites], c.least)
	}
	f.best, f.cost = mean, cost(mean, c.generations-1)
	return f
}

// moveTo moves mean and spread to those of the elites.
func moveTo(mean, spread []float64, elites []sample, least float64) {
	n := float64(len(elites))
	for i := range mean {
		sum, squares := 0.0, 0.0
		for _, e := range elites {
			sum += e.w[i]
		}
		for _, e := range elites {
			squares += (e.w[i] - sum/n) * (e.w[i] - sum/n)
		}
		mean[i], spread[i] = sum/n, max(least, math.Sqrt(squares/n))
	}
}

var bowlEffort = searchEffort{samples: 40, elites: 8, generations: 40, spread: 2, least: .05, seed: 1}

// The minimum of a bowl is recovered, also where it is seen through noise that changes
// with every generation.
func TestSearchRecoversMinimum(t *testing.T) {
	want := []float64{2, -1, .5, 3}
	bowl := func(w []float64, _ int) float64 {
		sum := 0.0
		for i := range w {
			sum += float64(i+1) * (w[i] - want[i]) * (w[i] - want[i])
		}
		return sum
	}
	noisy := func(w []float64, g int) float64 {
		return bowl(w, g) * (1 + .3*rand.New(rand.NewPCG(uint64(g), math.Float64bits(w[0]))).Float64())
	}
	for name, cost := range map[string]func([]float64, int) float64{"plain": bowl, "noisy": noisy} {
		f := crossEntropy(make([]float64, 4), bowlEffort, cost)
		for i := range want {
			if math.Abs(f.best[i]-want[i]) > .1 {
				t.Errorf("%s: weight %d is %g, expected %g", name, i, f.best[i], want[i])
			}
		}
		if f.curve[0] < 20*f.cost || len(f.curve) != 40 {
			t.Errorf("%s: the curve goes from %g to %g", name, f.curve[0], f.cost)
		}
		if again := crossEntropy(make([]float64, 4), bowlEffort, cost); !slices.Equal(again.best, f.best) {
			t.Errorf("%s: the same seed found something else", name)
		}
	}
}

// What it starts from is not lost where nothing around it is better.
func TestSearchKeepsTheBest(t *testing.T) {
	start := []float64{5, 5}
	c := bowlEffort
	c.elites, c.generations, c.least = 1, 3, 0
	f := crossEntropy(start, c, func(w []float64, _ int) float64 {
		if slices.Equal(w, start) {
			return 0
		}
		return 1
	})
	if !slices.Equal(f.best, start) || f.cost != 0 {
		t.Errorf("%+v", f)
	}
}
