// Package cem searches weights without a gradient, by the cross-entropy method (de Boer
// et al., Annals of OR 2005): draw samples around a mean, keep the best few, move mean and
// spread towards them, and again. What a sample costs may be a whole simulation. The mean
// itself is among the samples of every generation, so the search never loses what it
// started from. Left out: correlations between weights, which need more samples than we
// can afford.
package cem

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// Config is the effort.
type Config struct {
	Samples     int     `yaml:"samples"` // per generation, the mean included
	Elites      int     `yaml:"elites"`  // of them, that the next generation is drawn around
	Generations int     `yaml:"generations"`
	Spread      float64 `yaml:"spread"` // of the first generation, per weight
	Least       float64 `yaml:"least"`  // spread that is kept, so that the search does not fall asleep
	Seed        uint64  `yaml:"seed"`
}

// Validate says what is wrong with a configuration.
func (c Config) Validate() error {
	switch {
	case c.Elites < 1 || c.Samples <= c.Elites || c.Generations < 1:
		return errors.New("elites and generations must be at least 1, and samples more than elites")
	case !(c.Spread > 0) || !(c.Least >= 0):
		return errors.New("spread must be positive and least not negative")
	}
	return nil
}

// Found is what a search came to.
type Found struct {
	Best  []float64
	Cost  float64   // of Best, as it was measured
	Curve []float64 // cost of the best sample of each generation
}

// sample is a vector and what it costs.
type sample struct {
	w    []float64
	cost float64
}

// Search looks for weights of small cost around start. cost is asked with the number of
// the generation, for searches that measure each on other cases; Best is then the mean
// of the last one's elites, since costs of different generations do not compare, and
// Cost its cost there.
func Search(start []float64, c Config, cost func(w []float64, generation int) float64) (Found, error) {
	if err := c.Validate(); err != nil {
		return Found{}, err
	}
	rng := rand.New(rand.NewPCG(c.Seed, 3))
	mean, spread := slices.Clone(start), make([]float64, len(start))
	for i := range spread {
		spread[i] = c.Spread
	}
	var f Found
	for g := range c.Generations {
		all := []sample{{slices.Clone(mean), cost(mean, g)}}
		for len(all) < c.Samples {
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
		f.Curve = append(f.Curve, all[0].cost)
		settle(mean, spread, all[:c.Elites], c.Least)
	}
	f.Best, f.Cost = mean, cost(mean, c.Generations-1)
	return f, nil
}

// settle moves mean and spread to those of the elites.
func settle(mean, spread []float64, elites []sample, least float64) {
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
