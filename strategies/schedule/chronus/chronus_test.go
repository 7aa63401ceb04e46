package chronus_test

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/profile/oracle"
	"github.com/musterdl/muster/strategies/schedule/chronus"
)

func TestConforms(t *testing.T) {
	scheduletest.ConformJoint(t, func() allocate.Joint { return chronus.New(chronus.Default()) })
}

// job is one with a deadline, if there is one.
func job(name string, at unit.Duration, gang int32, runs, deadline unit.Duration) scheduletest.Job {
	return scheduletest.Job{Job: workload.Job{Name: name, Submit: unit.Time(at),
		Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole}, Deadline: deadline,
		Checkpoint: workload.Checkpoint{OnRequest: true}}, Truth: workload.Truth{Duration: runs}}
}

func run(t interface{ Fatalf(string, ...any) }, c chronus.Config, nodes, devices int, jobs scheduletest.Jobs) (*chronus.Chronus, scheduletest.Outcome) {
	decider := chronus.New(c)
	o, err := scheduletest.Run(scheduletest.JointConfig(scheduletest.Nodes(nodes, devices, 0), jobs, decider, oracle.Estimator{}))
	if err != nil || !o.Balanced {
		t.Fatalf("balanced %t, %v", o.Balanced, err)
	}
	return decider, o
}

// TestRefusedWithAnOffer: of two jobs that cannot both be in time one is refused with
// the earliest end; one without a deadline fills the gap before the other's leases.
func TestRefusedWithAnOffer(t *testing.T) {
	const m = unit.Minute
	c := chronus.Default()
	c.Margin, c.Switch = 1, 0
	jobs := scheduletest.Jobs{job("free", 0, 4, 30*m, 0), job("late", 0, 4, 60*m, 120*m), job("refused", 5*m, 4, 70*m, 90*m)}
	config := scheduletest.JointConfig(scheduletest.Nodes(1, 4, 0), jobs, chronus.New(c), oracle.Estimator{})
	var said []string
	config.Commit = func(v plan.View, c *plan.Commit) {
		for i := range c.Changes {
			if x := &c.Changes[i]; x.Verb == plan.Refuse {
				said = append(said, fmt.Sprint(v.Name(x.Job), " ", unit.Duration(x.Reason.A)))
			}
		}
	}
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	// At 5 minutes 60 are promised before 120 and 70 are asked for before 95: they can be
	// had only behind, by 135, which is 130 after submission.
	if len(said) != 1 || said[0] != "refused 2h10m" {
		t.Errorf("refused: %q", said)
	}
	for i, want := range []unit.Duration{30 * m, 90 * m} {
		if end := unit.Duration(o.Jobs[i].End); o.Jobs[i].Outcome != report.Finished || end != want {
			t.Errorf("%s is %s after %v, want %v", o.Jobs[i].Name, o.Jobs[i].Outcome, end, want)
		}
	}
}

// TestGuarantee: in the engine, with exact estimates and nothing lost by stopping,
// nobody who was admitted is late.
func TestGuarantee(t *testing.T) {
	admitted, refused := 0, 0
	draws.Check(t, func(t *rapid.T) {
		devices := rapid.IntRange(1, 8).Draw(t, "devices")
		var jobs scheduletest.Jobs
		at := unit.Duration(0)
		for i := range rapid.IntRange(1, 20).Draw(t, "jobs") {
			at += unit.Duration(rapid.IntRange(0, 1200).Draw(t, "gap")) * unit.Second
			runs := unit.Duration(rapid.IntRange(60, 9000).Draw(t, "runs")) * unit.Second
			deadline := unit.Duration(0)
			if rapid.IntRange(0, 3).Draw(t, "strict") > 0 {
				deadline = runs * unit.Duration(rapid.IntRange(100, 400).Draw(t, "slack")) / 100
			}
			jobs = append(jobs, job(fmt.Sprint("j", i), at, rapid.Int32Range(1, int32(devices)).Draw(t, "gang"), runs, deadline))
		}
		c := chronus.Default()
		c.Margin, c.Switch = 1, 0
		_, o := run(t, c, 1, devices, jobs)
		for i, j := range o.Jobs {
			due := jobs[i].Submit.Add(jobs[i].Deadline)
			switch {
			case j.Outcome == report.Refused:
				refused++
			case j.Outcome != report.Finished:
				t.Fatalf("job %s is %s", j.Name, j.Outcome)
			case jobs[i].Deadline > 0 && j.End > due:
				t.Fatalf("job %s was admitted, due at %v, and ends at %v", j.Name, unit.Duration(due), unit.Duration(j.End))
			case jobs[i].Deadline > 0:
				admitted++
			}
		}
	})
	if admitted == 0 || refused == 0 {
		t.Errorf("%d admitted, %d refused: nothing was tested", admitted, refused)
	}
	t.Logf("%d admitted, %d refused", admitted, refused)
}

// TestMemory: what is remembered comes back the same, and what is no memory is refused.
func TestMemory(t *testing.T) {
	jobs := scheduletest.Jobs{job("a", 0, 2, unit.Hour, 3*unit.Hour), job("b", 0, 1, unit.Hour, 2*unit.Hour), job("c", 0, 4, unit.Hour, 9*unit.Hour)}
	decider := chronus.New(chronus.Default())
	config := scheduletest.JointConfig(scheduletest.Nodes(1, 4, 0), jobs, decider, oracle.Estimator{})
	promised := 0
	config.Commit = func(plan.View, *plan.Commit) {
		other, memory := chronus.New(chronus.Default()), decider.Remember()
		promised = max(promised, len(memory))
		if err := other.Recall(memory); err != nil || !bytes.Equal(other.Remember(), memory) {
			t.Errorf("recalled %v as %v: %v", memory, other.Remember(), err)
		}
		if other.Recall(memory[:len(memory)-1]) == nil || other.Recall(append(memory, 1)) == nil {
			t.Error("a memory that was cut or goes on is taken for one")
		}
	}
	if _, err := scheduletest.Run(config); err != nil || promised < 10 {
		t.Errorf("%d bytes were remembered at most, %v", promised, err)
	}
}

func TestConfig(t *testing.T) {
	if err := strategy.Check(chronus.Default()); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(c *chronus.Config){
		func(c *chronus.Config) { c.Fill = 7 * unit.Minute }, func(c *chronus.Config) { c.Lease = 0 },
		func(c *chronus.Config) { c.Margin = 0.9 }, func(c *chronus.Config) { c.ExactJobs = -1 },
	} {
		c := chronus.Default()
		if spoil(&c); strategy.Check(c) == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}
