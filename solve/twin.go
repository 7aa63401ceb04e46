package solve

import "math"

// Twin is a model's answer beside that of its greedy twin, the cheap rule a strategy
// falls back on where the model is too large, and beside the bound neither can beat.
type Twin struct{ Model, Greedy, Bound float64 }

// ModelGap is how far the model's answer is from the bound, as a part of the answer.
func (t Twin) ModelGap() float64 { return Gap(t.Model, t.Bound) }

// GreedyGap is how far the twin's answer is from the bound, as a part of the answer.
func (t Twin) GreedyGap() float64 { return Gap(t.Greedy, t.Bound) }

// Gap is the distance of a value from its bound relative to the value: 0 where they
// are equal, infinite where the value is 0 and the bound is not.
func Gap(value, bound float64) float64 {
	if value == bound {
		return 0
	}
	if value == 0 {
		return math.Inf(1)
	}
	return math.Abs(value-bound) / math.Abs(value)
}
