package mlp

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
)

// The gradient is that of finite differences.
func TestGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range []Shape{{1, 0}, {3, 0}, {4, 5}} {
		w, x := s.Random(7), make([]float64, s.Inputs)
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
		s.AddGradient(w, x, 2, got)
		for i, want := range fd.Gradient(nil, func(w []float64) float64 { return 2 * s.Output(w, x) }, w, &fd.Settings{Formula: fd.Central}) {
			if math.Abs(got[i]-want) > 1e-5 {
				t.Errorf("%+v: d/dw[%d] is %g, expected %g", s, i, got[i], want)
			}
		}
	}
}

// What no straight line separates, hidden units learn: exclusive or, by plain descent.
func TestLearnsExclusiveOr(t *testing.T) {
	s := Shape{2, 4}
	w, grad := s.Random(3), make([]float64, s.Weights())
	at := [][]float64{{-1, -1}, {-1, 1}, {1, -1}, {1, 1}}
	want := []float64{-1, 1, 1, -1}
	for range 3000 {
		clear(grad)
		for i, x := range at {
			s.AddGradient(w, x, s.Output(w, x)-want[i], grad)
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
