// Package profile is step 1: how long and how fast would this job be? It declares
// the contract of estimating; strategies are in the folders below.
package profile

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Estimate is what is believed about a job's running time on the workers it asked
// for, without restarts. Zero Mean is "nothing is known".
type Estimate struct {
	Mean unit.Duration
	High unit.Duration // nine times in ten it is over by then; 0 is unknown
}

// Estimator believes something about jobs and learns from those that end.
type Estimator interface {
	Estimate(v plan.View, job plan.JobID) Estimate
	// Learn is told of every job that finished, once.
	Learn(v plan.View, job plan.JobID)
}

// Observer is an Estimator that learns how fast jobs go on what: from the rate, in
// millionths of its job's reference, at which a running job is seen to go. It returns
// what it now believes the job can be offered, nil for no change.
type Observer interface {
	Observe(v plan.View, job plan.JobID, rateMicro int64) plan.Menu
}

// Offerer is an Estimator that knows, when a job comes, what it can be offered; nil
// leaves what its owner declared.
type Offerer interface {
	Offers(v plan.View, job plan.JobID) plan.Menu
}

// Oracular is an Estimator that wants drivers to tell it the truth; only a
// simulated one can.
type Oracular interface {
	WantsTruth()
}
