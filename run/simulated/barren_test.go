package simulated_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// fickle ends what runs every second, beside the law that composed schedulers keep: no job ever saves.
type fickle struct{ schedule.Scheduler }

func (f fickle) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	for id := range plan.JobID(d.Jobs()) {
		if run := d.RunOf(id); run != plan.None && d.Run(run).Status == plan.Running {
			d.Stop(run, plan.Reason{Code: plan.RoundPlan}, 0)
			why.Jobs = append(why.Jobs, id)
		}
	}
	f.Scheduler.Decide(d, why)
	return d.Now().Add(unit.Second)
}

// TestHistoryWithoutProgressEnds: such a history would go on for ever.
func TestHistoryWithoutProgressEnds(t *testing.T) {
	var jobs list
	for _, name := range []string{"one", "other"} {
		jobs.jobs = append(jobs.jobs, workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole},
			Checkpoint: workload.Checkpoint{Load: unit.Minute}})
		jobs.truths = append(jobs.truths, workload.Truth{Duration: unit.Hour})
	}
	_, err := simulated.Run(t.Context(), simulated.Config{Cluster: cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1), Jobs: &jobs,
		Policy: engine.DefaultPolicy(), Scheduler: fickle{compose.New(compose.Parts{Estimator: declared.Estimator{}, Order: fifo.Order{},
			Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})}})
	if err == nil || !strings.Contains(err.Error(), "no job has ended") {
		t.Errorf("two jobs that are stopped for ever: %v", err)
	}
}

// shy wishes nothing, and wants to be asked again in a minute.
type shy struct{}

func (shy) Wishes(v plan.View, _ []plan.JobID, wishes []allocate.Wish) ([]allocate.Wish, unit.Time) {
	return wishes, v.Now().Add(unit.Minute)
}

// TestStrategyThatOnlyAsksEnds: nothing is committed and nothing is to come but the next
// question, though nodes break and mend for ever.
func TestStrategyThatOnlyAsksEnds(t *testing.T) {
	for _, breaks := range []simulated.Breaks{{}, {NodeEvery: unit.Day, NodeFor: unit.Hour}} {
		jobs := list{[]workload.Job{{Name: "patient", Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}}, []workload.Truth{{Duration: unit.Hour}}}
		_, err := simulated.Run(t.Context(), simulated.Config{Cluster: cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1), Jobs: &jobs, Breaks: breaks,
			Policy: engine.DefaultPolicy(), Strategy: "shy", Scheduler: compose.New(compose.Parts{Joint: shy{}, Estimator: declared.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})})
		if err == nil {
			t.Fatal("a strategy that only asks to be asked again has an end")
		}
		if breaks == (simulated.Breaks{}) && !strings.HasPrefix(err.Error(), "at 69d") {
			t.Errorf("100,010 minutes are 69 days: %v", err)
		}
		for _, says := range []string{"the strategy shy", "1 jobs waiting", "patient", "asked again at"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("the error does not say %q: %v", says, err)
			}
		}
	}
}

// TestSlowStrategyIsLetWait: one that starts a job after long is none that never does, and
// who sets an end gets it.
func TestSlowStrategyIsLetWait(t *testing.T) {
	config := func(decider allocate.Joint) simulated.Config {
		return simulated.Config{Cluster: cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1),
			Jobs:   &list{[]workload.Job{{Name: "patient", Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}}, []workload.Truth{{Duration: 365 * unit.Day}}},
			Policy: engine.DefaultPolicy(), Scheduler: compose.New(compose.Parts{Joint: decider, Estimator: declared.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})}
	}
	if r, err := simulated.Run(t.Context(), config(slow{})); err != nil || r.Finished != 1 {
		t.Errorf("a job that starts after a day and runs for a year, looked at every minute: %d finished, %v", r.Finished, err)
	}
	bounded := config(shy{})
	bounded.Until = unit.Time(100 * unit.Day)
	if r, err := simulated.Run(t.Context(), bounded); err != nil || r.Censored != 1 {
		t.Errorf("a history of 100 days in which nothing starts: %d censored, %v", r.Censored, err)
	}
}

// slow starts what waits when a day has passed.
type slow struct{}

func (slow) Wishes(v plan.View, jobs []plan.JobID, wishes []allocate.Wish) ([]allocate.Wish, unit.Time) {
	if v.Now() >= unit.Time(unit.Day) {
		for _, id := range jobs {
			wishes = append(wishes, allocate.Wish{Job: id, Workers: v.Shape(id).Gang})
		}
	}
	return wishes, v.Now().Add(unit.Minute)
}
