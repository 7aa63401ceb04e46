// Package declared believes the run time that the job's owner declared: the null
// of step 1.
package declared

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "declared", Part: profile.EstimatePart, Status: "null",
	Source: "folklore", Idea: "the owner's own estimate of the run time",
	Goal: "throughput", Needs: "the declared run time", Live: "as simulated",
}

// Estimator is the strategy.
type Estimator struct{}

var _ profile.Estimator = Estimator{}

// Estimate is what was declared; nothing when nothing was.
func (Estimator) Estimate(v plan.View, job plan.JobID) profile.Estimate {
	return profile.Estimate{Mean: v.Job(job).Declared}
}

// Learn changes nothing: declarations are believed as they come.
func (Estimator) Learn(plan.View, plan.JobID) {}
