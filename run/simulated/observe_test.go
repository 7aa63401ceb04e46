package simulated_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// content ends jobs whose loss is where their owners want it, and has others decide the
// rest.
type content struct {
	schedule.Scheduler
	seen []schedule.Observation
}

func (c *content) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	c.seen = append(c.seen, why.Observed...)
	for id := range plan.JobID(d.Jobs()) {
		if target := d.ProfileOf(id).TargetLoss; target > 0 && d.Job(id).Loss > 0 && d.Job(id).Loss <= target && d.Shed(id) {
			why.Jobs, why.Room = append(why.Jobs, id), true
		}
	}
	return c.Scheduler.Decide(d, why)
}

func newContent() *content {
	return &content{Scheduler: scheduletest.Config(scheduletest.Nodes(1, 1, 0), nil, scheduletest.With(fifo.Order{})).Scheduler}
}

// trained are jobs of 100 minutes with the loss 1/(k/10+1) after k percent: half of what
// it was at 10 %, a quarter at 30 %.
func trained(targets ...float64) (jobs scheduletest.Jobs) {
	for i, target := range targets {
		job := workload.Job{Name: string(rune('a' + i)), Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Traits: workload.Traits{TargetLoss: target},
			Checkpoint: workload.Checkpoint{OnRequest: true, Save: unit.Minute, Load: unit.Minute}}
		jobs = append(jobs, scheduletest.Job{Job: job, Truth: workload.Truth{Duration: 100 * unit.Minute, Loss: [3]float64{.1, 1, 0}}})
	}
	return jobs
}

func TestReports(t *testing.T) {
	c := newContent()
	config := scheduletest.Config(scheduletest.Nodes(1, 1, 0), trained(0), scheduletest.With(fifo.Order{}))
	config.Scheduler, config.ObserveEvery = c, 10*unit.Minute
	o, err := scheduletest.Run(config)
	if err != nil || o.Jobs[0].End != unit.Time(100*unit.Minute) {
		t.Fatalf("%v, ended at %v", err, o.Jobs[0].End)
	}
	if len(c.seen) != 9 {
		t.Fatalf("%d reports in 100 minutes, one every 10", len(c.seen))
	}
	for i, s := range c.seen {
		if want := 1 / (float64(i+1) + 1); s.Progress != int32(i+1)*100_000 || math.Abs(s.Loss-want) > 1e-12 {
			t.Errorf("report %d is %+v, expected loss %g", i, s, want)
		}
	}
	config = scheduletest.Config(scheduletest.Nodes(1, 1, 0), trained(0), scheduletest.With(fifo.Order{}))
	silent := newContent()
	config.Scheduler = silent
	if _, err := scheduletest.Run(config); err != nil || len(silent.seen) != 0 {
		t.Errorf("%v, %d reports although nobody asked for them", err, len(silent.seen))
	}
}

// TestStandingIsTold: a run that one of a better class leaves nothing of a link is seen to
// stand when it has for ten seconds, and what it did not do is not counted. It goes on when
// the other has ended.
func TestStandingIsTold(t *testing.T) {
	nodes := cluster.Uniform("two", 2, 2, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 2)
	nodes.Nodes[0].Uplink, nodes.Nodes[1].Uplink = 1000, 1000
	spans := func(j *workload.Job, _ *workload.Truth) { j.Gang, j.Traffic = 2, 1000 }
	over := func(id plan.JobID, class int32) func(d *plan.Draft) {
		return func(d *plan.Draft) {
			terms := plan.DefaultTerms()
			terms.Traffic.Class = class
			d.Start(id, []plan.Slot{{Node: 0, Device: plan.None, Workers: 1}, {Node: 1, Device: plan.None, Workers: 1}}, terms, because)
		}
	}
	s := act(0, over(0, 0)).then(1, over(1, 1))
	config := scheduletest.Config(nodes, scheduletest.Jobs{job(100, spans), job(50, spans)}, scheduletest.With(fifo.Order{}))
	config.Scheduler = s
	var told []string
	config.Step = func(at unit.Time, events []engine.Event, _ *engine.Out, v plan.View) {
		for i := range events {
			if e := &events[i]; e.Kind == engine.Observed {
				told = append(told, fmt.Sprintf("%s: rate %d, stood %s, did %s", unit.Duration(at), e.RateMicro, e.Stood, v.Work(e.Job)))
			}
		}
	}
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, "the run of the second class", o.Jobs[1], 150)
	if want := []string{"11s: rate 0, stood 10s, did 0s", "1m40s: rate 1000000, stood 0s, did 0s"}; !slices.Equal(told, want) {
		t.Errorf("told\n%s\nexpected\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

// A job that is ended with its goal reached saves first; what comes after it starts only
// then. A journal that is folded gives the same state, and so does going on from it.
func TestShed(t *testing.T) {
	jobs := trained(.25, 0, .5)
	jobs[1].After = []string{"a"}
	folded := engine.New(scheduletest.Nodes(1, 1, 0), newContent(), engine.DefaultPolicy())
	config := scheduletest.Config(scheduletest.Nodes(1, 1, 0), jobs, scheduletest.With(fifo.Order{}))
	config.Scheduler, config.ObserveEvery = newContent(), 10*unit.Minute
	var line []byte
	config.Commit = func(v plan.View, c *plan.Commit) { line = c.AppendJSON(nil, v) }
	config.Step = func(at unit.Time, events []engine.Event, out *engine.Out, v plan.View) {
		line = line[:0]
		if out.Commit != nil {
			line = out.Commit.AppendJSON(line, v)
		}
		text, _ := json.Marshal(events)
		var read []engine.Event
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if _, err := folded.Fold(at, read, line, out.Asides); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	config.Collector = report.NewCollector(report.Limits{Jobs: 8})
	s, err := simulated.New(config)
	for more := true; more && err == nil; {
		if more, err = s.Advance(); err == nil && !bytes.Equal(saved(t, s.State()), saved(t, folded.State())) {
			t.Fatalf("at %s the journal folds to another state", unit.Duration(s.State().Now))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	checkShed(t, s)
}

// A simulation that goes on from a state in which a job was just ended, and still saves,
// comes to the same end.
func TestShedResumes(t *testing.T) {
	jobs := trained(.25, 0, .5)
	jobs[1].After = []string{"a"}
	config := scheduletest.Config(scheduletest.Nodes(1, 1, 0), jobs, scheduletest.With(fifo.Order{}))
	config.Scheduler, config.ObserveEvery, config.Until = newContent(), 10*unit.Minute, unit.Time(30*unit.Minute)
	half := advanced(t, config)
	if v := half.State().View(); v.Job(0).Phase != plan.Finished || v.Job(0).Leaving == plan.None {
		t.Fatalf("job a is %s", v.Job(0).Phase)
	}
	config.From, config.At, config.Until, config.Jobs = half.State(), half.State().Now, 0, scheduletest.Jobs{}.Source()
	config.Known = func(_ plan.View, id plan.JobID) world.Known { return half.Known(id) }
	config.Scheduler, config.Collector = newContent(), report.NewCollector(report.Limits{})
	checkShed(t, advanced(t, config))
}

func advanced(t *testing.T, config simulated.Config) *simulated.Simulation {
	t.Helper()
	s, err := simulated.New(config)
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkShed: a ends after 30 minutes and a save, then c, which comes to half of its loss
// after 10; b, which comes after a, runs to its end.
func checkShed(t *testing.T, s *simulated.Simulation) {
	t.Helper()
	r, err := s.Result()
	if err != nil || !r.Balanced {
		t.Fatalf("%v, balanced %v", err, r.Balanced)
	}
	v := s.State().View()
	for id, want := range []struct {
		end    unit.Duration
		reason plan.ReasonCode
	}{{31 * unit.Minute, plan.Shed}, {142 * unit.Minute, plan.DidFinish}, {42 * unit.Minute, plan.Shed}} {
		j := v.Job(plan.JobID(id))
		if j.Phase != plan.Finished || j.Reason.Code != want.reason || j.Ended != unit.Time(want.end) {
			t.Errorf("job %s: %s since %s, %s", v.Name(plan.JobID(id)), j.Phase, unit.Duration(j.Ended), j.Reason.Words(v))
		}
	}
}

func saved(t *testing.T, s *plan.State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
