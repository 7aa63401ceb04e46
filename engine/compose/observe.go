package compose

import (
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/schedule"
)

// observed lets the estimator learn from what runs were seen to do; what it then
// believes a job can be offered is its menu from now on.
func (p *Parts) observed(d *plan.Draft, why schedule.Trigger) {
	o, ok := p.Estimator.(profile.Observer)
	if !ok {
		return
	}
	for i := range why.Observed {
		seen := &why.Observed[i]
		if menu := o.Observe(d.View, seen.Job, seen.RateMicro); menu != nil {
			d.Offers(seen.Job, menu)
		}
	}
}
