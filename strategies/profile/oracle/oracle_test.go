package oracle_test

import (
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

func TestEstimate(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1}}
	told := s.Admit("told", plan.Asked{Declared: unit.Minute})
	s.Jobs[told].Oracle = unit.Hour
	untold := s.Admit("untold", plan.Asked{Declared: unit.Minute})
	for id, want := range map[plan.JobID]profile.Estimate{told: {Mean: unit.Hour, High: unit.Hour}, untold: {}} {
		if got := (oracle.Estimator{}).Estimate(s.View(), id); got != want {
			t.Errorf("%s: got %v, want %v", s.Names[id], got, want)
		}
	}
}
