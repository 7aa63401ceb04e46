package plan_test

import (
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// TestEndedSince: who was told to stop does not count, and neither does who ended before.
func TestEndedSince(t *testing.T) {
	s := plan.NewState(cluster.Uniform("gpus", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Ended = plan.EndedRuns{{Told: unit.Never, Gone: 10}, {Told: 30, Gone: 30}}
	for at, want := range map[unit.Time]bool{5: true, 10: false, 15: false, 30: false} {
		if got := plan.EndedSince(s.View(), at); got != want {
			t.Errorf("since %d: %t", at, got)
		}
	}
}
