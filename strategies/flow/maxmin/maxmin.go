// Package maxmin leaves every run's traffic in one class of equal weight, so that
// the network shares its links max-min fairly: the null of step 5.
package maxmin

import (
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "max-min", Part: flow.PolicyPart, Status: "null",
	Source: "folklore", Idea: "every run's traffic alike; links are shared max-min",
	Goal: "throughput", Needs: "nothing", Live: "what the network does by itself",
}

// Policy is the strategy.
type Policy struct{}

var _ flow.Policy = Policy{}

// Traffic is the same for every run.
func (Policy) Traffic(plan.View, plan.JobID) plan.TrafficTerms { return plan.TrafficTerms{} }
