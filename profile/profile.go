// Package profile is step 1: how long and how fast would this job be? It declares
// the contract of estimating; strategies are in the folders below.
package profile

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Estimate is what is believed about a job's running time on the workers it asked
// for, without restarts. Zero Mean is "nothing is known".
type Estimate struct {
	Mean unit.Duration
	High unit.Duration // nine times in ten it is over by then; 0 is unknown
}

// EstimatePart says how long jobs take.
var EstimatePart = strategy.NewPart[Estimator](strategy.Part{Name: "estimate", Rank: 10, Step: "profile", Null: "declared", Default: "declared"})

// Estimator believes something about jobs and learns from those that end.
type Estimator interface {
	Estimate(v plan.View, job plan.JobID) Estimate
	// Learn is told of every job that finished, once.
	Learn(v plan.View, job plan.JobID)
}

// Oracular is an Estimator that wants drivers to tell it the truth; only a
// simulated one can.
type Oracular interface {
	WantsTruth()
}
