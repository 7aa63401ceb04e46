package view

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// TestDue: what becomes of a deadline is said in each phase of a job, in its table and beside its name.
func TestDue(t *testing.T) {
	h := newHistory(t, "fifo+declared")
	submit := func(name string, gang int32, estimate, deadline unit.Duration) {
		j := workload.Job{Name: name, Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole}}
		j.Estimate, j.Deadline = estimate, deadline
		h.step(engine.Event{Kind: engine.Submit, Spec: &j})
	}
	submit("in-time", 8, unit.Hour, 2*unit.Hour)
	submit("late", 1, 2*unit.Hour, unit.Hour)
	submit("unknown", 1, 0, unit.Hour)
	submit("none", 1, unit.Hour, 0)
	said := func(name, words, brief string) {
		t.Helper()
		v := h.e.View()
		id, _ := h.e.Find(name)
		j := JobOf(v, h.info[id], id, explain.Of(v, nil))
		if words == "" {
			if j.Due != nil {
				t.Errorf("%s has no deadline: %+v", name, j.Due)
			}
			return
		}
		if want := v.Job(id).Submit.Add(v.Job(id).Deadline); !j.Due.Deadline.Equal(time.UnixMicro(int64(want))) || !strings.HasPrefix(j.Due.Words, words) || !strings.Contains(j.Due.brief(), brief) {
			t.Errorf("%s: %+v, in a table %q", name, j.Due, j.Due.brief())
		}
		var table, one bytes.Buffer
		if err := WriteJobs(&table, []Job{j}, TextOptions{}); err != nil || !strings.Contains(table.String(), "DEADLINE") {
			t.Errorf("%v: %s", err, &table)
		}
		if err := WriteJob(&one, &j, TextOptions{}); err != nil || !strings.Contains(one.String(), ", "+j.Due.Words+"\n") {
			t.Errorf("%v: %s", err, &one)
		}
	}
	said("in-time", "expected to end 1h00m before it", "1h00m early")
	said("late", "would end 1h00m after it if it started now", "1h00m late")
	said("unknown", "nobody knows how long the job runs", "-")
	said("none", "", "")

	h.now += unit.Time(90 * unit.Minute)
	submit("filler", 1, unit.Hour, 0)
	said("in-time", "expected to end", "early")
	said("unknown", "it is past by", "past")
	first, _ := h.e.Find("in-time")
	h.step(engine.Event{Kind: engine.Exited, Job: first, Attempt: h.e.View().Job(first).Attempt})
	said("in-time", "finished", "early")
	late, _ := h.e.Find("late")
	h.step(engine.Event{Kind: engine.Cancel, Job: late})
	said("late", "did not finish", "missed")
	second, _ := h.e.Find("unknown")
	h.step(engine.Event{Kind: engine.Exited, Job: second, Attempt: h.e.View().Job(second).Attempt})
	if p := h.e.View().Job(second).Phase; p != plan.Finished {
		t.Fatalf("unknown is %s", p)
	}
	said("unknown", "finished", "late")
}
