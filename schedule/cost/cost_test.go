package cost_test

import (
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/cost"
)

// TestLeft: of jobs that wait, and that nobody has run, the cost is what is believed and their load; of one of which
// nothing is believed that of one that has run for a minute.
func TestLeft(t *testing.T) {
	for _, c := range []struct {
		estimate, load unit.Duration
		want           float64
	}{{600 * unit.Second, 0, 600}, {600 * unit.Second, 30 * unit.Second, 630}, {0, 0, 60}} {
		s := plan.NewState(cluster.Uniform("gpus", 1, 4, cluster.Model{Name: "gpu"}, 1))
		s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}}
		id := s.Admit("job", plan.Asked{})
		s.Jobs[id].Estimate, s.Jobs[id].Checkpoint.Load = c.estimate, c.load
		if got := (cost.Left{}).Cost(s.View(), id); got != c.want {
			t.Errorf("estimate %s, load %s: %g s, want %g", c.estimate, c.load, got, c.want)
		}
	}
}
