package scheduletest

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
)

// Conform proves that orders made by the function keep the contract: the state
// stays legal and the ledger balanced, nothing is started twice, every job
// finishes, those that were displaced included, ranks hold as long as they were
// said to, rules are kept, and the same history gives the same decisions.
func Conform(t *testing.T, newOrder func() schedule.Order) {
	t.Run("empty cluster", func(t *testing.T) { conform(t, Nodes(1, 4, 0), nil, newOrder) })
	t.Run("one job", func(t *testing.T) {
		job := Job{workload.Job{Name: "only", Resources: workload.Resources{Gang: 4, Devices: 1, Share: unit.Whole}}, workload.Truth{Duration: unit.Hour}}
		o := conform(t, Nodes(1, 4, 0), Jobs{job}, newOrder)
		if end := o.Jobs[0].End; end != unit.Time(unit.Hour) {
			t.Errorf("an hour's work alone ended after %s", unit.Duration(end))
		}
	})
	t.Run("history", func(t *testing.T) {
		draws.Cases{Few: 40}.Check(t, func(t *rapid.T) {
			nodes, devices := rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices")
			conform(t, Nodes(nodes, devices, 0), drawJobs(t, int32(nodes*devices)), newOrder)
		})
	})
}

// fataler is what a *testing.T and a *rapid.T have in common.
type fataler interface {
	Fatalf(format string, args ...any)
}

// conform runs a history twice, the first time under observation.
func conform(t fataler, c *cluster.Cluster, jobs Jobs, newOrder func() schedule.Order) Outcome {
	w := watch(newOrder())
	config := Config(c, jobs, With(w))
	config.Prices.Restart = 30 * unit.Second
	restarted := &restarts{}
	observe(&config, func(v plan.View, c *plan.Commit) {
		w.verifyAll(v)
		w.justPreempted(v, c)
		restarted.note(c)
	})
	o := mustRun(t, config)
	if w.broken != nil {
		t.Fatalf("%v", w.broken)
	}
	for _, j := range o.Jobs {
		if j.Outcome != report.Finished {
			t.Fatalf("job %s is %s", j.Name, j.Outcome)
		}
		if id := plan.JobID(j.ID); restarted.stops(id) > 0 && restarted.last(id) != plan.Start {
			t.Fatalf("job %s was displaced and never started again", j.Name)
		}
	}
	again := Config(c, jobs, With(newOrder()))
	again.Prices = config.Prices
	if b := mustRun(t, again); b.DecisionHash != o.DecisionHash {
		t.Fatalf("the same history gave other decisions: %s, then %s", o.DecisionHash, b.DecisionHash)
	}
	return o
}

func mustRun(t fataler, config simulated.Config) Outcome {
	o, err := Run(config)
	switch {
	case err != nil:
		t.Fatalf("%v", err)
	case !o.Balanced:
		t.Fatalf("the ledger does not balance")
	}
	return o
}

// drawJobs draws a history whose jobs all fit the cluster: gangs and shares, short
// and long, checkpoints that take time and such that do not.
func drawJobs(t *rapid.T, devices int32) Jobs {
	var jobs Jobs
	now := unit.Time(0)
	for i := range rapid.IntRange(1, 20).Draw(t, "jobs") {
		now = now.Add(unit.Duration(rapid.IntRange(0, 300).Draw(t, "gap")) * unit.Second)
		j := Job{workload.Job{Name: "j" + strconv.Itoa(i), Submit: now, Resources: workload.Resources{Devices: 1, Share: unit.Whole}}, workload.Truth{}}
		j.Gang = rapid.Int32Range(1, devices).Draw(t, "gang")
		if rapid.IntRange(0, 4).Draw(t, "shared") == 0 {
			j.Gang, j.Share = 1, unit.Milli(rapid.IntRange(1, 9).Draw(t, "share"))*100
		}
		j.Duration = unit.Duration(rapid.IntRange(1, 2000).Draw(t, "run")) * unit.Second
		j.Priority = rapid.Int32Range(0, 1).Draw(t, "priority")
		j.Checkpoint = workload.Checkpoint{OnRequest: true, Load: unit.Minute}
		if rapid.Bool().Draw(t, "saves") {
			j.Checkpoint.Save = 5 * unit.Second
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// restarts remembers the last start or stop of each job.
type restarts struct {
	verbs   map[plan.JobID]plan.Verb
	stopped map[plan.JobID]int
}

func (r *restarts) note(c *plan.Commit) {
	if r.verbs == nil {
		r.verbs, r.stopped = map[plan.JobID]plan.Verb{}, map[plan.JobID]int{}
	}
	for i := range c.Changes {
		x := &c.Changes[i]
		r.verbs[x.Job] = x.Verb
		if x.Verb == plan.Stop {
			r.stopped[x.Job]++
		}
	}
}

func (r *restarts) stops(id plan.JobID) int      { return r.stopped[id] }
func (r *restarts) last(id plan.JobID) plan.Verb { return r.verbs[id] }
