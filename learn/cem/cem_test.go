package cem

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func config() Config {
	return Config{Samples: 40, Elites: 8, Generations: 40, Spread: 2, Least: .05, Seed: 1}
}

// The minimum of a bowl is recovered, also where it is seen through noise that changes
// with every generation.
func TestRecoversMinimum(t *testing.T) {
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
		f, err := Search(make([]float64, 4), config(), cost)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if math.Abs(f.Best[i]-want[i]) > .1 {
				t.Errorf("%s: weight %d is %g, expected %g", name, i, f.Best[i], want[i])
			}
		}
		if f.Curve[0] < 20*f.Cost || len(f.Curve) != 40 {
			t.Errorf("%s: the curve goes from %g to %g", name, f.Curve[0], f.Cost)
		}
		if again, _ := Search(make([]float64, 4), config(), cost); !slices.Equal(again.Best, f.Best) {
			t.Errorf("%s: the same seed found something else", name)
		}
	}
}

// What it starts from is not lost where nothing around it is better.
func TestKeepsTheBest(t *testing.T) {
	start := []float64{5, 5}
	c := config()
	c.Elites, c.Generations, c.Least = 1, 3, 0
	f, err := Search(start, c, func(w []float64, _ int) float64 {
		if slices.Equal(w, start) {
			return 0
		}
		return 1
	})
	if err != nil || !slices.Equal(f.Best, start) || f.Cost != 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []Config{{}, {Samples: 3, Elites: 3, Generations: 1, Spread: 1}, {Samples: 4, Elites: 3, Generations: 1}} {
		if _, err := Search([]float64{1}, c, nil); err == nil {
			t.Errorf("%+v is taken for valid", c)
		}
	}
}
