package simulated_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/allocate/firstfit"
	"github.com/musterdl/muster/allocate/fixed"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/flow/maxmin"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile/declared"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

// fickle changes its mind every second: less than a job takes to be restored.
type fickle struct{}

func (fickle) Key(v plan.View, job plan.JobID) (schedule.Key, unit.Time) {
	second := int64(v.Now()) / int64(unit.Second)
	return schedule.Key{(int64(job) + second) % 2}, unit.Time((second + 1) * int64(unit.Second))
}

func (fickle) Rules() schedule.Rules { return schedule.Rules{Preempt: true} }

// TestHistoryWithoutProgressEnds: such a history would go on for ever.
func TestHistoryWithoutProgressEnds(t *testing.T) {
	var jobs list
	for _, name := range []string{"one", "other"} {
		jobs.jobs = append(jobs.jobs, workload.Job{Name: name, Gang: 1, Devices: 1, Share: unit.Whole,
			Checkpoint: workload.Checkpoint{OnRequest: true, Load: unit.Minute}})
		jobs.truths = append(jobs.truths, workload.Truth{Duration: unit.Hour})
	}
	_, err := simulated.Run(simulated.Config{Cluster: cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1), Jobs: &jobs,
		Policy: engine.DefaultPolicy(), Scheduler: compose.New(compose.Parts{Estimator: declared.Estimator{}, Order: fickle{},
			Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})})
	if err == nil || !strings.Contains(err.Error(), "no job has ended") {
		t.Errorf("two jobs that displace each other for ever: %v", err)
	}
}
