// Package oracle believes the truth: the run time that the driver tells it, which
// only a simulated one knows. It is what every other estimator is measured
// against, and what clairvoyant yardsticks such as SRTF are run with. Where nobody
// tells the truth it knows nothing, rather than fall back to something less.
package oracle

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "oracle", Part: profile.EstimatePart, Status: "null",
	Source: "yardstick", Idea: "the true run time, as only a simulation knows it",
	Goal: "throughput", Needs: "the truth", Live: "refused, because only a simulation knows true run times",
}

// Estimator is the strategy.
type Estimator struct{}

var (
	_ profile.Estimator = Estimator{}
	_ profile.Oracular  = Estimator{}
)

// Estimate is the truth, with no doubt about it.
func (Estimator) Estimate(v plan.View, job plan.JobID) profile.Estimate {
	truth := v.Job(job).Oracle
	return profile.Estimate{Mean: truth, High: truth}
}

// Learn changes nothing: there is nothing left to learn.
func (Estimator) Learn(plan.View, plan.JobID) {}

// WantsTruth asks the driver to tell true run times.
func (Estimator) WantsTruth() {}
