package view

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

func TestSpan(t *testing.T) {
	for sec, want := range map[float64]string{0: "0s", 0.045: "45ms", 2.5: "2.5s", 9: "9s", 59.9: "59s", 60: "1m00s", 725: "12m05s",
		3600: "1h00m", 12345: "3h25m", 86400 * 12.5: "12d12h", -90: "-1m30s"} {
		if got := SpanSec(sec); got != want {
			t.Errorf("%v s is %q, want %q", sec, got, want)
		}
	}
	for sec, want := range map[float64]string{.4: "0s", 59.6: "1m00s", 7198: "2h00m", 7140 + 29: "1h59m", 2*86400 - 60: "2d00h"} {
		if got := nearest(sec); got != want {
			t.Errorf("about %gs: %q, want %q", sec, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		places []Place
		want   string
	}{
		{nil, ""},
		{[]Place{{Node: "a", Devices: []int32{0}}}, "a:0"},
		{[]Place{{Node: "a", Devices: []int32{0, 1, 2, 5, 7, 8}}, {Node: "b", Devices: []int32{3}, Share: 0.5}}, "a:0-2,5,7-8 b:3*0.5"},
		{[]Place{{Node: "cpu"}}, "cpu"},
	} {
		if got := placeText(c.places); got != c.want {
			t.Errorf("%v is %q, want %q", c.places, got, c.want)
		}
	}
}

// history drives an engine through events, ten seconds apart, confirming every start, and
// every stop unless runs linger.
type history struct {
	t       testing.TB
	e       *engine.Engine
	now     unit.Time
	lingers bool
	// specs and dossiers are what the plane would keep.
	info []plane.JobInfo
}

func newHistory(t testing.TB, strategy string) *history {
	return historyOn(t, strategy, cluster.Uniform("lab", 2, 4, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16))
}

func historyOn(t testing.TB, strategy string, c *cluster.Cluster) *history {
	composition, err := catalogue.Resolve(strategy)
	if err != nil {
		t.Fatal(err)
	}
	built, err := composition.Build(catalogue.Env{Seed: 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	return &history{t: t, e: engine.New(c, built.Scheduler, engine.DefaultPolicy()), now: 1_700_000_000_000_000}
}

func (h *history) step(events ...engine.Event) {
	h.now += unit.Time(10 * unit.Second)
	for len(events) > 0 {
		for _, ev := range events {
			if ev.Kind == engine.Submit {
				h.info = append(h.info, plane.JobInfo{Spec: ev.Spec})
			}
		}
		out := h.e.Step(h.now, events)
		events = nil
		if out.Commit != nil {
			for _, c := range out.Commit.Changes {
				entry := plane.Entry{At: h.now, Verb: c.Verb.String(), Attempt: c.Attempt, Words: c.Reason.Words(h.e.View())}
				for _, n := range out.Commit.Notes {
					if n.Change == c.ID {
						entry.Notes = append(entry.Notes, n)
					}
				}
				h.info[c.Job].Dossier = append(h.info[c.Job].Dossier, entry)
			}
		}
		for _, c := range out.Ready {
			kind := engine.Started
			if c.Verb == plan.Stop && h.lingers {
				continue
			}
			if c.Verb == plan.Stop {
				kind = engine.Stopped
			}
			events = append(events, engine.Event{Kind: kind, Job: c.Job, Attempt: c.Attempt})
		}
	}
}

func submit(j workload.Job) engine.Event {
	j.Gang, j.Share = max(1, j.Gang), unit.Whole
	return engine.Event{Kind: engine.Submit, Spec: &j}
}

// job describes a job, and tests that its JSON is read back as the same.
func (h *history) job(id plan.JobID) Job {
	h.t.Helper()
	j := JobOf(h.e.View(), h.info[id], id, explain.Of(h.e.View(), nil))
	data, err := json.Marshal(j)
	if err != nil {
		h.t.Fatal(err)
	}
	var back Job
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(j, back) {
		h.t.Errorf("%+v\nis read back as\n%+v (%v)", j, back, err)
	}
	return j
}

func TestStory(t *testing.T) {
	h := newHistory(t, "fifo")
	h.step(submit(workload.Job{Name: "big", Resources: workload.Resources{Gang: 6, Devices: 1}, Estimate: unit.Hour, Tenant: "vision", User: "ann",
		Program: workload.Program{Command: []string{"train"}}}))
	h.step(submit(workload.Job{Name: "next", Resources: workload.Resources{Gang: 4, Devices: 1}}))
	h.step(submit(workload.Job{Name: "later", Resources: workload.Resources{Gang: 4, Devices: 1}}), submit(workload.Job{Name: "never", Resources: workload.Resources{Gang: 9, Devices: 1}}))
	h.step(engine.Event{Kind: engine.Hold, Job: 2}, submit(workload.Job{Name: "after", Resources: workload.Resources{Devices: 1}, After: []string{"next"}}))
	v := h.e.View()
	big := h.job(0)
	wantWhere := []Place{{Node: "node0", Devices: []int32{0, 1, 2, 3}}, {Node: "node1", Devices: []int32{0, 1}}}
	if big.Run != "running" || big.RanSec != 30 || big.WaitedSec != 0 || big.Devices != 6 || big.EstimateSec != 3600 || !reflect.DeepEqual(big.Where, wantWhere) {
		t.Errorf("big is %+v", big)
	}
	for id, want := range []string{1: "wants 4 devices; 2 are free and would hold 2 of its 4 workers, but they start together or not at all", 2: "held by a person; release it to go on",
		3: "can never start here: wants 9 devices; the whole cluster, if it were idle, would hold 8 of its 9 workers", 4: "comes after next, which is waiting"} {
		if id == 0 {
			continue
		}
		if j := h.job(plan.JobID(id)); j.Reason != want {
			t.Errorf("%s is %s: %q, want %q", j.Name, j.Phase, j.Reason, want)
		}
	}
	y := WhyOf(v, h.info[4], 4, explain.Of(h.e.View(), nil))
	if y.Code != "waits-for-job" || y.Words != "comes after next, which is waiting" || y.Free != 2 || y.Wants != 1 || y.Earlier != 2 {
		t.Errorf("why after: %+v", y)
	}
	c := ClusterOf(v, "fifo", explain.Of(h.e.View(), nil).Live(), map[plan.Phase]int{plan.Finished: 3})
	q := Queue{Waiting: 2, Held: 1, Blocked: 1, Devices: 13, Oldest: "next", OldestSec: 20}
	if c.Queue != q || c.Jobs["finished"] != 3 || c.Jobs["active"] != 1 || c.Devices != (Capacity{Total: 8, Granted: 6, Free: 2}) {
		t.Errorf("the cluster is %+v", c)
	}
	n := NodeOf(v, 1)
	if n.Free != 2 || n.Devices[1].Holders[0] != (Holder{Job: "big", Run: "running", Share: 1}) || len(n.Devices[2].Holders) != 0 {
		t.Errorf("node1 is %+v", n)
	}
	s := StepsOf(v, h.info[0], 0)
	if len(s.Decisions) != 1 || s.Decisions[0].Verb != "start" {
		t.Fatalf("the steps of big: %+v", s)
	}
	names := []string{}
	for _, step := range s.Decisions[0].Steps {
		names = append(names, step.Name)
		if step.Chose == "" || step.Rejected == "" || step.Because == "" {
			t.Errorf("step %s says nothing: %+v", step.Name, step)
		}
	}
	if want := []string{"profile", "allocate", "schedule", "pipeline", "flow", "run"}; !slices.Equal(names, want) {
		t.Errorf("the steps are %v, want %v", names, want)
	}
	h.step(engine.Event{Kind: engine.Exited, Job: 0, Attempt: 1})
	h.step(engine.Event{Kind: engine.Rebuilt})
	if j := h.job(0); j.Phase != "finished" || j.Progress != 1 || j.RanSec != 40 || !j.Over() || j.Ended.IsZero() {
		t.Errorf("big is %+v", j)
	}
}

// TestStopping: who is being stopped is seen to be, where it is; who is to have its devices
// waits until it starts, and says for whom.
func TestStopping(t *testing.T) {
	h := newHistory(t, "fifo")
	h.lingers = true
	h.step(submit(workload.Job{Name: "big", Resources: workload.Resources{Gang: 8, Devices: 1}}))
	h.step(submit(workload.Job{Name: "next", Resources: workload.Resources{Gang: 4, Devices: 1}}))
	h.step(engine.Event{Kind: engine.Hold, Job: 0})
	h.step(engine.Event{Kind: engine.Tick})
	big, next := h.job(0), h.job(1)
	if big.Phase != "held" || big.Run != "stopping" || placeText(big.Where) != "node0:0-3 node1:0-3" || !strings.Contains(h.why(0), "its last run is still stopping") {
		t.Errorf("big is %+v, and says %s", big, h.why(0))
	}
	if next.Run != "promised" || next.WaitedSec != 20 || next.RanSec != 0 || !strings.HasSuffix(h.why(1), "; it starts after the runs that are stopping there: big") {
		t.Errorf("next is %+v, and says %s", next, h.why(1))
	}
	h.step(engine.Event{Kind: engine.Stopped, Job: 0, Attempt: 1})
	h.step(engine.Event{Kind: engine.Tick})
	if big, next = h.job(0), h.job(1); big.Run != "" || next.Run != "running" || next.WaitedSec != 30 || next.RanSec != 10 {
		t.Errorf("when it has left, big is %+v and next %+v", big, next)
	}
}

// why is why a job is where it is, in words.
func (h *history) why(id plan.JobID) string {
	return WhyOf(h.e.View(), h.info[id], id, explain.Of(h.e.View(), nil)).Words
}

// Waited and ran add up to the time since a job was submitted, whatever becomes of
// it, and devices are neither lost nor counted twice.
func TestSums(t *testing.T) {
	draws.Check(t, func(r *rapid.T) {
		h := newHistory(t, rapid.SampledFrom([]string{"fifo", "tiresias"}).Draw(r, "strategy"))
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			if len(h.info) == 0 || rapid.Bool().Draw(r, "new") {
				name := "j" + string(rune('a'+len(h.info)))
				h.step(submit(workload.Job{Name: name, Resources: workload.Resources{Gang: rapid.Int32Range(1, 8).Draw(r, "gang"), Devices: 1}, Retries: 2}))
				continue
			}
			id := plan.JobID(rapid.IntRange(0, len(h.info)-1).Draw(r, "job"))
			h.step(engine.Event{Kind: rapid.SampledFrom([]engine.Kind{engine.Hold, engine.Release, engine.Exited, engine.Cancel}).Draw(r, "kind"),
				Job: id, Attempt: h.e.View().Job(id).Attempt, Ending: engine.Ending{Class: plan.FailureClass(rapid.IntRange(0, 2).Draw(r, "class"))}})
		}
		v := h.e.View()
		for id := range h.info {
			j := h.job(plan.JobID(id))
			until := instant(v.Now())
			if j.Over() {
				until = j.Ended
			}
			if d := until.Sub(j.Submitted).Seconds() - j.WaitedSec - j.RanSec; d > 1e-6 || d < -1e-6 {
				r.Fatalf("%s: waited %v and ran %v of %v", j.Name, j.WaitedSec, j.RanSec, until.Sub(j.Submitted))
			}
		}
		c, free := CapacityOf(v), 0.0
		for _, n := range NodesOf(v) {
			free += n.Free
		}
		if c.Total != c.Granted+c.Free+c.Closed+c.Lost || c.Free+c.Closed != free {
			r.Fatalf("%+v does not add up, the nodes have %v free", c, free)
		}
	})
}

// No line of a table is wider than the terminal, unless its cells but the last are;
// and without colour there is none.
func TestTables(t *testing.T) {
	h := newHistory(t, "fifo")
	for _, name := range []string{"a", "b", "with-a-long-name", "d"} {
		h.step(submit(workload.Job{Name: name, Resources: workload.Resources{Gang: 4, Devices: 1}}))
	}
	v := h.e.View()
	var jobs []Job
	for id := range h.info {
		jobs = append(jobs, h.job(plan.JobID(id)))
	}
	var plainText bytes.Buffer
	if err := WriteJobs(&plainText, jobs, TextOptions{Width: 70}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(plainText.String(), "\n"), "\n")
	if len(lines) != 5 || !strings.HasSuffix(lines[3], "…") {
		t.Errorf("the table is\n%s", plainText.String())
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) > 70 || strings.TrimRight(l, " ") != l {
			t.Errorf("too wide, or with blanks at the end: %q", l)
		}
	}
	cluster := ClusterOf(v, "fifo", explain.Of(h.e.View(), nil).Live(), nil)
	why, steps := WhyOf(v, h.info[2], 2, explain.Of(h.e.View(), nil)), StepsOf(v, h.info[0], 0)
	for _, color := range []bool{false, true} {
		o := TextOptions{Width: 120, Color: color}
		for name, f := range map[string]func(w io.Writer) error{
			"jobs": func(w io.Writer) error { return WriteJobs(w, jobs, o) }, "job": func(w io.Writer) error { return WriteJob(w, &jobs[0], o) },
			"nodes": func(w io.Writer) error { return WriteNodes(w, NodesOf(v), o) }, "cluster": func(w io.Writer) error { return WriteCluster(w, &cluster, o) },
			"why": func(w io.Writer) error { return WriteWhy(w, &why, o) }, "steps": func(w io.Writer) error { return WriteSteps(w, &steps, o) },
		} {
			var b bytes.Buffer
			if err := f(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "\x1b") != color {
				t.Errorf("%s in colour %v:\n%s", name, color, b.String())
			}
		}
	}
	var b bytes.Buffer
	if err := WriteWhy(&b, &why, TextOptions{}); err != nil || b.String() != `with-a-long-name is waiting: wants 4 devices; 0 are free
what would have to change
  - a to end; how long that takes nobody has said
the nodes
    2  no device free
who holds it
  JOB  QUEUE  DEVICES  EXPECTED UNTIL
  a           4        nobody knows
the counts behind it
  - needs 4 devices together: 4 workers with 1 each
  - 0 of 8 devices it may use are free
  - 0 waiting jobs were submitted earlier, 0 of the same shape
  - has waited 10s in all
  - last event, at `+timeText(instant(v.Job(2).Submit))+`: wants 4 devices, 0 are free for it
` {
		t.Errorf("why says (%v)\n%s", err, b.String())
	}
}

// TestUnsaved: of a job that did not save when it was asked to its view, its page and why say so, until it does.
func TestUnsaved(t *testing.T) {
	h := newHistory(t, "fifo")
	h.lingers = true
	h.step(submit(workload.Job{Name: "big", Resources: workload.Resources{Gang: 8, Devices: 1}, Checkpoint: workload.Checkpoint{OnRequest: true}}))
	const words = "it saved nothing when it was last asked to: it counts as one that loses all its work when it is stopped, until it saves when asked"
	says := func() (said []bool) {
		job, why := h.job(0), WhyOf(h.e.View(), h.info[0], 0, explain.Of(h.e.View(), nil))
		var page strings.Builder
		if err := WriteJob(&page, &job, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		return []bool{job.Saving == words, slices.Contains(why.Detail, words), strings.Contains(page.String(), words)}
	}
	for _, unsaved := range []bool{true, false} {
		j := h.e.View().Job(0)
		h.step(engine.Event{Kind: engine.Requeue, Job: 0})
		h.step(engine.Event{Kind: engine.Stopped, Job: 0, Attempt: j.Attempt, Ending: engine.Ending{Unsaved: unsaved, Kept: unit.Second}})
		h.step(engine.Event{Kind: engine.Tick})
		if said := says(); slices.Contains(said, !unsaved) {
			t.Errorf("it saved nothing: %v; its view, why and its page say so: %v", unsaved, said)
		}
	}
}
