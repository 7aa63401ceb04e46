// Package perf holds Optimus' model of how fast a job runs on so many workers and
// parameter servers (Peng et al., EuroSys 2018; status read): linear in what is unknown
// once inverted, fitted by non-negative least squares to what was measured. It says how
// far it can be trusted.
package perf

import "math"

// Trust says how far a fitted model can be trusted.
type Trust struct {
	// Points is the number of observations the model was fitted to.
	Points int
	// Sigma is the standard deviation of an observation about the model, relative
	// (in natural logarithms), corrected for the parameters fitted. A model with no
	// more observations than parameters knows nothing about its errors: 1.
	Sigma float64
}

// trust estimates Sigma from a sum of squared relative residuals.
func trust(points, parameters int, squares float64) Trust {
	if points <= parameters {
		return Trust{Points: points, Sigma: 1}
	}
	return Trust{Points: points, Sigma: math.Sqrt(squares / float64(points-parameters))}
}
