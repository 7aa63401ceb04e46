package strategies_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
)

// TestConform: every strategy of a part that has no suite of its own keeps the contract in
// whole simulations.
func TestConform(t *testing.T) {
	for _, e := range catalogue.All {
		if e.Part == schedule.OrderPart || e.Part == allocate.PlacePart || e.Part == allocate.JointPart {
			continue // their own tests call their suites
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c, err := catalogue.Resolve(e.Name)
			if err != nil {
				t.Fatal(err)
			}
			scheduletest.ConformPart(t, e.Part, func() any {
				filled, err := c.Fill(catalogue.Env{Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				return filled[e.Part].Strategy
			})
		})
	}
}
