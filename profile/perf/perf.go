// Package perf holds models of how fast a job runs on what it is given, fitted to
// what was measured so far. It is a mechanism: several allocators ask the same
// models. Each model says how far it can be trusted.
//
//   - Pollux's goodput (Qiao et al., OSDI 2021; artefact petuum/adaptdl, branch
//     osdi21-artifact; status read): the time of a step from compute and exchange, fitted
//     online with optimistic priors, times the statistical efficiency of the batch, which
//     follows from the gradient noise scale. A job's batch is the one of most goodput.
//   - Optimus' speed of workers and parameter servers, and its loss curve (Peng et al.,
//     EuroSys 2018; status read): linear in what is unknown once inverted, fitted by
//     non-negative least squares.
//   - Table: straight lines between measured points, nothing beyond them.
//   - Factors: a low-rank tensor over job classes, device types and counts, in logarithms,
//     so that a class measured here is known there (status after the mechanism's notes).
//
// Left out: models of memory and of power, which belong to other mechanisms.
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
