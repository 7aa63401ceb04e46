// Package flow is step 5: which bytes first, at what rate. At job scale a run's
// traffic is one stream per link; a policy gives it a strict class and a weight,
// and the network shares each class max-min.
package flow

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// PolicyPart says which bytes go first.
var PolicyPart = strategy.NewPart[Policy](strategy.Part{Name: "flow", Rank: 100, Step: "flow", Null: "max-min", Default: "max-min"})

// Policy says what a run that is about to start gets of the links.
type Policy interface {
	Traffic(v plan.View, job plan.JobID) plan.TrafficTerms
}
