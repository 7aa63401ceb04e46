// Package rightstest is what the tests of every decider's rights share: who decides, and what
// is held.
package rightstest

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Deciders are the orders and the joint strategies of the catalogue that decide by
// themselves: a script ranks jobs as an order does, and Jahani rents nodes, which a plain
// cluster does not have.
func Deciders() (names []string) {
	for _, e := range catalogue.All {
		if (e.Part == schedule.OrderPart || e.Part == allocate.JointPart) && e.Name != "external" && e.Name != "jahani" {
			names = append(names, e.Name)
		}
	}
	return names
}

// Held is what the runs of some jobs hold that are not on their way out, in thousandths of
// devices.
func Held(v plan.View, of func(job plan.JobID) bool) (milli int64) {
	for id := range plan.RunID(v.RunSlots()) {
		if r := v.Run(id); r.Status != plan.Gone && r.Status != plan.Stopping && of(r.Job) {
			v.GrantsOf(id, func(g plan.Grant) { milli += int64(g.Reserve) })
		}
	}
	return milli
}
