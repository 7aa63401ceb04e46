package mlfs

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"

	"github.com/musterdl/muster/strategies/schedule/mlfs/perceptron"
)

// random draws weights to start from: the straight way says nothing, and hidden units
// answer in their middle range to inputs of about 1.
func random(s perceptron.Shape, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := make([]float64, s.Weights())
	for i := s.Inputs; i < len(w); i++ {
		w[i] = rng.NormFloat64() / math.Sqrt(float64(s.Inputs))
	}
	return w
}

// addGradient adds to grad what each weight does to the output, times scale.
func addGradient(s perceptron.Shape, w, x []float64, scale float64, grad []float64) {
	for i, v := range x {
		grad[i] += scale * v
	}
	for u := range s.Hidden {
		unit, g := s.Unit(w, u), s.Unit(grad, u)
		out := math.Tanh(s.Into(unit, x))
		g[s.Inputs+1] += scale * out
		back := scale * unit[s.Inputs+1] * (1 - out*out)
		for i, v := range x {
			g[i] += back * v
		}
		g[s.Inputs] += back
	}
}

// The gradient is that of finite differences.
func TestGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range []perceptron.Shape{{Inputs: 1}, {Inputs: 3}, {Inputs: 4, Hidden: 5}} {
		w, x := random(s, 7), make([]float64, s.Inputs)
		if len(w) != s.Weights() {
			t.Fatalf("%d weights, said %d", len(w), s.Weights())
		}
		for i := range w {
			w[i] += rng.NormFloat64()
		}
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		got := make([]float64, len(w))
		addGradient(s, w, x, 2, got)
		for i, want := range fd.Gradient(nil, func(w []float64) float64 { return 2 * s.Output(w, x) }, w, &fd.Settings{Formula: fd.Central}) {
			if math.Abs(got[i]-want) > 1e-5 {
				t.Errorf("%+v: d/dw[%d] is %g, expected %g", s, i, got[i], want)
			}
		}
	}
}

// What no straight line separates, hidden units learn: exclusive or, by plain descent.
func TestLearnsExclusiveOr(t *testing.T) {
	s := perceptron.Shape{Inputs: 2, Hidden: 4}
	w, grad := random(s, 3), make([]float64, s.Weights())
	at := [][]float64{{-1, -1}, {-1, 1}, {1, -1}, {1, 1}}
	want := []float64{-1, 1, 1, -1}
	for range 3000 {
		clear(grad)
		for i, x := range at {
			addGradient(s, w, x, s.Output(w, x)-want[i], grad)
		}
		for i := range w {
			w[i] -= .05 * grad[i]
		}
	}
	for i, x := range at {
		if got := s.Output(w, x); math.Abs(got-want[i]) > .1 {
			t.Errorf("at %v: %g, expected %g", x, got, want[i])
		}
	}
}
