// Package mlp is a multi-layer perceptron as small as they come: one hidden layer of
// hyperbolic tangents beside a straight way from the inputs to the one output. Its
// weights are a plain vector, which whoever trains it owns: a gradient method here, a
// search without gradients there. Left out: more layers, batches, float32.
package mlp

import (
	"math"
	"math/rand/v2"
)

// Shape is how many inputs and hidden units there are; without hidden units the output is
// linear in the inputs.
type Shape struct {
	Inputs int `json:"inputs"`
	Hidden int `json:"hidden"`
}

// Weights is how long the vector of weights is: one per input, then per hidden unit one
// per input, its bias and what it counts for.
func (s Shape) Weights() int { return s.Inputs + s.Hidden*(s.Inputs+2) }

// Random draws weights to start from: the straight way says nothing, and hidden units
// answer in their middle range to inputs of about 1.
func (s Shape) Random(seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := make([]float64, s.Weights())
	for i := s.Inputs; i < len(w); i++ {
		w[i] = rng.NormFloat64() / math.Sqrt(float64(s.Inputs))
	}
	return w
}

// Output is the answer to inputs.
func (s Shape) Output(w, x []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += w[i] * v
	}
	for u := range s.Hidden {
		unit := s.unit(w, u)
		sum += unit[s.Inputs+1] * math.Tanh(s.into(unit, x))
	}
	return sum
}

// AddGradient adds to grad what each weight does to the output, times scale.
func (s Shape) AddGradient(w, x []float64, scale float64, grad []float64) {
	for i, v := range x {
		grad[i] += scale * v
	}
	for u := range s.Hidden {
		unit, g := s.unit(w, u), s.unit(grad, u)
		out := math.Tanh(s.into(unit, x))
		g[s.Inputs+1] += scale * out
		back := scale * unit[s.Inputs+1] * (1 - out*out)
		for i, v := range x {
			g[i] += back * v
		}
		g[s.Inputs] += back
	}
}

func (s Shape) unit(w []float64, u int) []float64 {
	from := s.Inputs + u*(s.Inputs+2)
	return w[from : from+s.Inputs+2]
}

func (s Shape) into(unit, x []float64) float64 {
	sum := unit[s.Inputs]
	for i, v := range x {
		sum += unit[i] * v
	}
	return sum
}
