package whatif_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/whatif"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

func job(name string, gang int32, takes unit.Duration) workload.Job {
	return workload.Job{Name: name, Tenant: "a", Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole}, Estimate: takes,
		Checkpoint: workload.Checkpoint{OnRequest: true, Save: 2 * unit.Second, Load: 3 * unit.Second}}
}

// queued is two nodes of two devices at 10 s: long and short have two devices each,
// since then, of 100 and 40 s. Wide waits with four devices and 50 s, and behind it,
// since nobody passes, small with one device and 20 s.
func queued(t *testing.T, strategy string) whatif.Base {
	t.Helper()
	return busy(t, strategy, job("wide", 4, 50*unit.Second), job("small", 1, 20*unit.Second))
}

// busy is the same with others waiting.
func busy(t *testing.T, strategy string, others ...workload.Job) whatif.Base {
	t.Helper()
	c := cluster.Uniform("small", 2, 2, cluster.Model{Name: "gpu", Speed: 1}, 2)
	composition, err := catalogue.Parse("test", strategy)
	if err != nil {
		t.Fatal(err)
	}
	built, err := composition.Build(catalogue.Env{Seed: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(c, built.Scheduler, engine.DefaultPolicy())
	tree := queue.Flat("a", "b")
	e.Step(0, []engine.Event{{Kind: engine.Shares, Queues: &tree}})
	for i, j := range append([]workload.Job{job("long", 2, 100*unit.Second), job("short", 2, 40*unit.Second)}, others...) {
		e.Step(0, []engine.Event{{Kind: engine.Submit, Spec: &j}})
		if i < 2 {
			e.Step(0, []engine.Event{{Kind: engine.Started, Job: plan.JobID(i), Attempt: 1}})
		}
	}
	e.Step(unit.Time(10*unit.Second), []engine.Event{{Kind: engine.Tick}})
	return whatif.Base{Fork: plane.Fork{State: e.State(), Strategy: composition, Seed: 1, Policy: engine.DefaultPolicy()}}
}

func ask(t *testing.T, base whatif.Base, q whatif.Request) whatif.Answer {
	t.Helper()
	if err := q.Check(); err != nil {
		t.Fatal(err)
	}
	a, err := whatif.Ask(t.Context(), base, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAsk: answers that can be computed by hand.
func TestAsk(t *testing.T) {
	for _, x := range []struct {
		name string
		q    whatif.Request
		want string // of the jobs that have another future, what they start and end at with the change
		says string
	}{
		{"another strategy", whatif.Request{Strategy: "fifo"}, "small 40-60", "fifo instead of fifo-strict"},
		{"nodes", whatif.Request{AddNodes: 1, AddDevices: 4}, "small 40-60 wide 10-60", "1 more node"},
		{"nodes of a new model", whatif.Request{AddNodes: 2, Model: "new", Speed: 2}, "small 35-45 wide 10-35", "2 more nodes"},
		// Long saves for 2 s, waits for short to end and loads for 3 s; wide never fits.
		{"a node less", whatif.Request{Remove: []string{"node0"}}, "long 43-133 small -1--1 wide -1--1", "without 1 node"},
	} {
		a := ask(t, queued(t, "fifo-strict"), x.q)
		var got []string
		for _, j := range a.Jobs {
			got = append(got, fmt.Sprintf("%s %s-%s", j.Job, seconds(j.AlternativeStartUs), seconds(j.AlternativeEndUs)))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != x.want || !strings.Contains(a.Words, x.says) {
			t.Errorf("%s: %s, by hand it is %s: %s", x.name, got, x.want, a.Words)
		}
		if a.Base.Finished != 4 || a.Base.Unfinished != 0 || a.Base.Devices != 4 || a.Base.Strategy != "fifo-strict" {
			t.Errorf("%s: the base is %+v", x.name, a.Base)
		}
	}
	a := ask(t, queued(t, "fifo-strict"), whatif.Request{Strategy: "fifo"})
	// They wait 100 and 150 s, or 100 and 40; two do not wait.
	if a.Compared != 4 || a.Base.MeanWaitS != 62.5 || a.Alternative.MeanWaitS != 35 || a.Alternative.MeanJCTS != (100+40+150+60)/4. {
		t.Errorf("the means are wrong: %+v, %+v", a.Base, a.Alternative)
	}
}

func seconds(at unit.Time) string {
	if at < 0 {
		return "-1"
	}
	return fmt.Sprint(at.Seconds())
}

// TestSubmitted: whether a job that is not submitted yet fits, when, and whom it
// displaces.
func TestSubmitted(t *testing.T) {
	for _, x := range []struct {
		strategy, want string
		job            workload.Job
	}{
		{"fifo-strict", "starts in 2m20s and displaces nobody", job("extra", 1, 5*unit.Second)},
		{"srtf+declared", "starts in 2s and displaces 2 jobs", job("urgent", 3, 5*unit.Second)},
		{"fifo", "does not start in this time", job("huge", 64, unit.Second)},
	} {
		base := queued(t, x.strategy)
		if x.job.Name == "urgent" {
			base = busy(t, x.strategy)
		}
		base.Jobs = []workload.Job{x.job}
		a := ask(t, base, whatif.Request{Job: "read by the caller"})
		if len(a.Submitted) != 1 || !strings.Contains(a.Words, x.want) {
			t.Errorf("%s: %q, expected %q", x.job.Name, a.Words, x.want)
		}
	}
}

// TestNothingDiffers: where both futures are alike that is said, and no figures.
func TestNothingDiffers(t *testing.T) {
	a := ask(t, queued(t, "fifo"), whatif.Request{Strategy: "fifo+lowest-rank"})
	if len(a.Jobs) > 0 || !strings.HasPrefix(a.Words, "with fifo+lowest-rank instead of fifo nothing is different: the same 4 jobs finish, at the same times") {
		t.Errorf("%+v: %s", a.Jobs, a.Words)
	}
}

// TestGuarantee: a queue with a guarantee takes back what it is sure of.
func TestGuarantee(t *testing.T) {
	base := queued(t, "fifo")
	tree := queue.Flat("a", "b")
	tree.Protect = unit.Second
	base.State.SetQueues(tree)
	mine := job("mine", 2, 20*unit.Second)
	mine.Tenant = "b"
	base.Jobs = []workload.Job{mine}
	q := whatif.Request{Job: "read by the caller", Queue: &whatif.Share{Name: "b", GuaranteeDevices: 2}}
	a := ask(t, base, q)
	if s := a.Submitted[0]; len(s.Preempts) != 1 || s.StartUs != unit.Time(12*unit.Second) {
		t.Errorf("with a guarantee of 2 devices: %+v", s)
	}
	q.Queue.GuaranteeDevices = 0
	if a := ask(t, base, q); len(a.Submitted[0].Preempts) != 0 {
		t.Errorf("without a guarantee: %+v", a.Submitted[0])
	}
	q.Queue.GuaranteeDevices = 400
	if _, err := whatif.Ask(t.Context(), base, q); !whatif.IsWrong(err) || !strings.Contains(err.Error(), "400 devices guaranteed to b of 4 devices that there would be") {
		t.Errorf("400 of 4 devices guaranteed: %v", err)
	}
	if got := base.State.View().Queues().Queues[2].Guarantee; got != nil {
		t.Errorf("the state was changed: %v", got)
	}
}

// TestDecides: what another strategy decides at once is told apart: the shortest takes
// the place of the one with most left.
func TestDecides(t *testing.T) {
	a := ask(t, queued(t, "fifo-strict"), whatif.Request{Strategy: "srtf"})
	if !slices.Equal(a.Now.Starts, []string{"small"}) || !slices.Equal(a.Now.Stops, []string{"long"}) || a.Now.Waiting != 2 {
		t.Errorf("%+v", a.Now)
	}
}

// TestWrong: mistakes are told as such, with what was expected.
func TestWrong(t *testing.T) {
	for _, x := range []struct {
		q    whatif.Request
		want string
	}{
		{whatif.Request{}, "nothing is different"},
		{whatif.Request{Strategy: "best"}, "neither a strategy"},
		{whatif.Request{Strategy: "order: fifo\nnonsense: 1"}, "nonsense"},
		{whatif.Request{Remove: []string{"node9"}}, `no node "node9"`},
		{whatif.Request{Remove: []string{"node0", "node0"}}, "twice"},
		{whatif.Request{Remove: []string{"node0", "node1"}}, "no node would be left"},
		{whatif.Request{AddNodes: -1}, "expected at most"},
		{whatif.Request{AddNodes: 1, Model: "tpu"}, `no devices of model "tpu"`},
		{whatif.Request{Model: "tpu", Strategy: "fifo"}, "how many"},
		{whatif.Request{Queue: &whatif.Share{Name: "c"}}, `no queue "c"`},
		{whatif.Request{Queue: &whatif.Share{Name: ""}}, "no queue"},
		{whatif.Request{Queue: &whatif.Share{Name: "a", GuaranteeDevices: -1}}, "negative"},
		{whatif.Request{Strategy: "fifo", HorizonS: 1e12}, "horizon_s"},
		{whatif.Request{Strategy: "fifo", LastS: -1}, "last_s"},
		{whatif.Request{Job: "name: x", LastS: 1}, "not in the past"},
	} {
		err := x.q.Check()
		if err == nil {
			_, err = whatif.Ask(t.Context(), queued(t, "fifo"), x.q)
		}
		if !whatif.IsWrong(err) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, expected %q", x.q, err, x.want)
		}
	}
	for name, change := range map[string]func(*workload.Job){
		"there is a job named": func(j *workload.Job) { j.Name = "long" },
		"does not exist":       func(j *workload.Job) { j.After = []string{"nobody"} },
		"does not have":        func(j *workload.Job) { j.Models = []string{"tpu"} },
	} {
		base := queued(t, "fifo")
		base.Jobs = []workload.Job{job("x", 1, 1)}
		change(&base.Jobs[0])
		if _, err := whatif.Ask(t.Context(), base, whatif.Request{Job: "x"}); !whatif.IsWrong(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, expected %q", err, name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := whatif.Ask(ctx, queued(t, "fifo"), whatif.Request{Strategy: "las"}); !errors.Is(err, context.Canceled) || whatif.IsWrong(err) {
		t.Errorf("nobody waits for it any more: %v", err)
	}
}

// TestShown: text, page and JSON of an answer.
func TestShown(t *testing.T) {
	a := ask(t, queued(t, "fifo-strict"), whatif.Request{Strategy: "fifo"})
	last := a.Base.Series[len(a.Base.Series)-1]
	if first := a.Base.Series[0]; first.BusyDevices != 4 || first.WaitingJobs != 2 || first.AtUs != a.FromUs || last.AtUs != unit.Time(170*unit.Second) {
		t.Errorf("the series goes from %+v to %+v", first, last)
	}
	var text, page bytes.Buffer
	if err := errors.Join(whatif.Write(&text, &a), whatif.WriteHTML(&page, &a)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"AS IT IS", "fifo-strict", "small", "+30s", "+2m20s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if n := strings.Count(page.String(), "<svg role"); n != 2 || strings.Contains(page.String(), "<?xml") {
		t.Errorf("%d pictures in the page", n)
	}
	a.Keep(func(name string) bool { return false })
	if len(a.Jobs) != 0 || a.JobsLeftOut != 1 {
		t.Errorf("%d jobs are shown, %d left out", len(a.Jobs), a.JobsLeftOut)
	}
	data, err := json.Marshal(&a)
	if err != nil || !strings.Contains(string(data), `"jobs":[]`) || !strings.Contains(string(data), `"mean_wait_s":62.5`) {
		t.Errorf("%s, %v", data, err)
	}
}
