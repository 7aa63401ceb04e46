package shed_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/mlfs/shed"
)

// seen is a Scheduler that decides nothing and keeps what it was called for.
type seen struct{ why schedule.Trigger }

func (s *seen) Decide(_ *plan.Draft, why schedule.Trigger) unit.Time {
	s.why = why
	return unit.Never
}

// TestShed: who is content is ended when a period begins and what waits asks for enough,
// and at no other time.
func TestShed(t *testing.T) {
	for _, test := range []struct {
		name     string
		overload unit.Milli
		now      unit.Time
		wake     bool
		want     []plan.JobID // ended
	}{
		{"overloaded", 500, unit.Time(unit.Minute), true, []plan.JobID{1}},
		{"what waits asks for less", 2000, unit.Time(unit.Minute), true, nil},
		{"never", 0, unit.Time(unit.Minute), true, nil},
		{"inside a period", 500, unit.Time(90 * unit.Second), true, nil},
		{"called for something else", 500, unit.Time(unit.Minute), false, nil},
	} {
		s := plan.NewState(cluster.Uniform("two", 1, 2, cluster.Model{Name: "gpu"}, 1))
		s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
		for range 3 {
			s.Admit("job", plan.Asked{Profile: plan.None})
		}
		s.Now = test.now
		inner := &seen{}
		c := shed.Around(inner, shed.Rule{Period: unit.Minute, Overload: test.overload, Content: func(_ plan.View, job plan.JobID) bool { return job == 1 }})
		d := s.Edit()
		c.Decide(d, schedule.Trigger{Jobs: []plan.JobID{0, 1, 2}, Wake: test.wake})
		d.Commit()
		var ended []plan.JobID
		for id := range plan.JobID(3) {
			if s.View().Job(id).Phase.Over() {
				ended = append(ended, id)
			}
		}
		if !slices.Equal(ended, test.want) || inner.why.Room != (test.want != nil) {
			t.Errorf("%s: %v were ended, expected %v; the Scheduler inside was called for %+v", test.name, ended, test.want, inner.why)
		}
	}
}

// TestObserved: a job that reported is ranked anew.
func TestObserved(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	s.Admit("job", plan.Asked{Profile: plan.None})
	inner := &seen{}
	shed.Around(inner, shed.Rule{Period: unit.Minute}).Decide(s.Edit(), schedule.Trigger{Observed: []schedule.Observation{{Job: 0, Loss: 1}}})
	if !slices.Equal(inner.why.Jobs, []plan.JobID{0}) {
		t.Errorf("the Scheduler inside was called for %v, expected the job that reported", inner.why.Jobs)
	}
}
