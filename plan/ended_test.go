package plan_test

import (
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// TestServedBeforeStaysAsItWas: what a job had been served before an instant is the same while its run goes on, when
// that has been told to stop, and when it is gone; of a run that was gone before, only what was kept counts.
func TestServedBeforeStaysAsItWas(t *testing.T) {
	s := &plan.State{Jobs: make([]plan.Job, 1), Now: 50}
	s.Shapes = []plan.Shape{{Gang: 2, Devices: 1, Share: 1000}}
	r := plan.Run{Status: plan.Running, Workers: 2, Began: 10, Since: 10}
	s.Runs = []plan.Run{r}
	served := func(before unit.Time) int64 { return plan.ServedBefore(s.View(), before, nil)[0] }
	check := func(when string, before unit.Time, want int64) {
		t.Helper()
		if got := served(before); got != want {
			t.Errorf("%s: %d before %d, want %d", when, got, before, want)
		}
	}
	check("while it goes on", 40, 2000*30)
	s.Runs[0].Status, s.Runs[0].Since, s.Now = plan.Stopping, 60, 70
	check("told to stop", 40, 2000*30)
	check("told to stop", 65, 2000*50)
	r, s.Runs[0].Status, s.Now = s.Runs[0], plan.Gone, 80
	s.Ended.Add(s, &r, 45)
	check("gone", 40, 2000*30)
	check("gone", 65, 2000*50)
	check("gone", 81, 2000*45)
}
