package local_test

import (
	"fmt"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/cgroup"
)

// TestCeiling: a run may use what its strategy says above its share, and its share weighs.
func TestCeiling(t *testing.T) {
	if support := cgroup.Probe(); !support.CPU {
		t.Skip(support)
	}
	h := startOn(t, stateDir(t), "fifo+mps", local.Slots{Count: 1, CPU: 500, Memory: 2048})
	defer h.stop()
	j := worker(t, "part", 10, 0, -1, 0)
	j.Share = 300
	id := h.begin(j)
	if got, want := h.spec("part", 1, 0).Limits, (cgroup.Limits{CPU: 300, Memory: 614, Weight: 300}); got != want {
		t.Errorf("three tenths of a slot under a ceiling of six are held to %+v, expected %+v", got, want)
	}
	if got := quotaOf(t, h.driver.MemberDir("part", 1, 0)); got != .3 {
		t.Errorf("it may use %v cores, expected 0.3", got)
	}
	h.cancel(id)
}

// TestGandiva: two jobs that take turns on the only slot are tried side by side, with equal
// rights, and both end.
func TestGandiva(t *testing.T) {
	t.Parallel()
	h := startOn(t, stateDir(t), "joint: gandiva\noptions:\n  gandiva:\n    quantum: 1s\n", local.Slots{Count: 1, CPU: 500, Memory: 2048})
	defer h.stop()
	var ids []plan.JobID
	for _, name := range []string{"one", "two"} {
		ids = append(ids, h.submit(worker(t, name, 2, 10, -1, 300)))
	}
	guest := plan.JobID(plan.None)
	h.wait(ids[0], "beside the other", func(_ plan.Job, v plan.View) bool {
		for _, id := range ids {
			if run := v.Job(id).Run; run != plan.None && v.Run(run).Status == plan.Running && v.Run(run).Terms.Share.Guest != plan.None {
				guest = id
			}
		}
		return guest != plan.JobID(plan.None)
	})
	for _, name := range []string{"one", "two"} {
		if s := h.spec(name, 1, 0); s.Law != "" || s.Limits.CPU != 500 || s.Pool.CPU != 500 || s.Pool != h.spec("one", 1, 0).Pool {
			t.Errorf("%s is held to %+v in %+v by the law %q", name, s.Limits, s.Pool, s.Law)
		}
	}
	for _, id := range ids {
		if j := h.wait(id, "over", over); j.Phase != plan.Finished {
			t.Errorf("job %d is %s", id, j.Phase)
		}
	}
}

// TestEveryStrategy: with every strategy that this machine can obey a gang, an elastic job,
// half a slot and a job that is promised nothing run as real processes, and end.
func TestEveryStrategy(t *testing.T) {
	needLong(t)
	t.Parallel()
	often := map[string]string{"pollux": "interval: 500ms", "optimus": "interval: 500ms", "easyscale": "every: 500ms", "afs": "every: 500ms",
		"liquid-batch": "every: 500ms", "gavel": "round-s: 1"}
	for _, e := range catalogue.All {
		c, err := catalogue.Resolve(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if e.Name == "external" || c.Refuse(run.Slots) != nil {
			continue
		}
		c, err = c.Live()
		if truth := e.Name == "oracle" || e.Name == "noisy"; truth != (err != nil) {
			t.Errorf("%s: %v", e.Name, err)
		}
		if err != nil {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			text := c.Text
			switch { // those that look around now and then do so at once
			case often[e.Name] != "":
				text = fmt.Sprintf("joint: %s\noptions:\n  %[1]s:\n    %s\n", e.Name, often[e.Name])
			case e.Name == "igniter":
				text += "+first-fit" // it takes services alone
			}
			h := start(t, stateDir(t), text)
			defer h.stop()
			base := workload.Job{Estimate: unit.Second, Deadline: unit.Hour, Checkpoint: workload.Checkpoint{OnRequest: true},
				Program: workload.Program{Command: shell("sleep 0.2")}}
			gang, elastic, half, rest := base, base, base, base
			gang.Name, gang.Gang = "gang", 2
			elastic.Name, elastic.Gang, elastic.Sizes = "elastic", 1, []int32{1, 2}
			half.Name, half.Share = "half", 500
			rest.Name, rest.Opportunistic = "rest", true
			for _, j := range []workload.Job{gang, elastic, half, rest} {
				id := h.submit(j)
				if j := h.wait(id, "over", over); j.Phase != plan.Finished {
					t.Errorf("job %d is %s, %s", id, j.Phase, j.Reason.Code)
				}
			}
		})
	}
}
