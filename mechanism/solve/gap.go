package solve

import "math"

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
