// Package perceptron answers from a small neural network whose weights somebody else
// trained.
package perceptron

import "math"

// Shape is that of a multi-layer perceptron as small as they come: one hidden layer of
// hyperbolic tangents beside a straight way from the inputs to the one output; without
// hidden units the output is linear in the inputs. Its weights are a plain vector, which
// whoever trains it owns. Left out: more layers, batches, float32.
type Shape struct {
	Inputs int `json:"inputs"`
	Hidden int `json:"hidden"`
}

// Weights is how long the vector of weights is: one per input, then per hidden unit one
// per input, its bias and what it counts for.
func (s Shape) Weights() int { return s.Inputs + s.Hidden*(s.Inputs+2) }

// Output is the answer to inputs.
func (s Shape) Output(w, x []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += w[i] * v
	}
	for u := range s.Hidden {
		unit := s.Unit(w, u)
		sum += unit[s.Inputs+1] * math.Tanh(s.Into(unit, x))
	}
	return sum
}

// Unit is the part of the weights that is of one hidden unit.
func (s Shape) Unit(w []float64, u int) []float64 {
	from := s.Inputs + u*(s.Inputs+2)
	return w[from : from+s.Inputs+2]
}

// Into is what goes into a hidden unit.
func (s Shape) Into(unit, x []float64) float64 {
	sum := unit[s.Inputs]
	for i, v := range x {
		sum += unit[i] * v
	}
	return sum
}
