package feasible_test

import (
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/schedule/feasible"
)

// TestAdmit asks for 8 devices of which 4 are taken for another 2 hours.
func TestAdmit(t *testing.T) {
	const hour = unit.Hour
	for _, c := range []struct {
		name          string
		gang          int32
		length, until unit.Duration // of the job, and its deadline
		needs         unit.Duration // the earliest end; 0 where it is admitted
	}{
		{"no deadline", 8, hour, 0, 0},
		{"what is free is enough", 4, hour, hour, 0},
		{"it has to wait, and can", 8, hour, 3 * hour, 0},
		{"it has to wait too long", 8, hour, 3*hour - 1, 3 * hour},
		{"it takes too long by itself", 4, 2 * hour, hour, 2 * hour},
		{"nobody knows how long it takes", 8, 0, hour, 0},
		{"it can never start", 9, hour, hour, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := plan.NewState(cluster.Uniform("test", 1, 8, cluster.Model{Name: "gpu", Memory: 1 << 10}, 1))
			s.Tenants, s.Users, s.Classes = []string{"t"}, []string{"u"}, []string{""}
			s.Shapes = []plan.Shape{{Gang: 4, Devices: 1, Share: 1000, Models: 1}, {Gang: c.gang, Devices: 1, Share: 1000, Models: 1}}
			other := s.Admit("other", plan.Asked{Declared: 2 * hour, Profile: plan.None})
			s.Jobs[other].Estimate = 2 * hour
			d := s.Edit()
			run, why := d.Start(other, []plan.Slot{{Node: 0, Device: plan.None, Workers: 4}}, plan.DefaultTerms(), plan.Reason{})
			if why.Code != plan.NoReason {
				t.Fatal(why)
			}
			d.Commit()
			s.Dispatch(run)
			s.Began(run)
			job := s.Admit("job", plan.Asked{Shape: 1, Declared: c.length, Deadline: c.until, Profile: plan.None})
			s.Jobs[job].Estimate = c.length
			ok, reason := feasible.Gate{}.Admit(s.View(), job)
			if ok != (c.needs == 0) || unit.Duration(reason.A) != c.needs {
				t.Errorf("admitted %t, earliest end %v: want %v", ok, unit.Duration(reason.A), c.needs)
			}
		})
	}
}
