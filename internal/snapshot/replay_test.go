package snapshot

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// TestReplayRepeats: replayed under the strategy that made it, a history without
// accidents is the recorded one, decision for decision, and its row has the figures of
// the simulation that made the history.
func TestReplayRepeats(t *testing.T) {
	for _, strategy := range []string{"fifo", "tiresias", "srtf", "srtf+history"} {
		t.Run(strategy, func(t *testing.T) {
			l := past{trace: "gen:rw-a", strategy: strategy, jobs: 200, nodes: 3}.live(t)
			p := readBack(t, l)
			alike(t, "recorded", p.Recorded.Result, l.result)
			rows, err := p.Replay(t.Context(), []string{strategy})
			if err != nil {
				t.Fatal(err)
			}
			alike(t, "replayed", rows[0].Result, l.result)
			if len(rows[0].Jobs) != 200 || len(p.Recorded.Jobs) != 200 || len(p.Recorded.Result.Notes) != 0 {
				t.Errorf("%d and %d jobs, notes %q", len(rows[0].Jobs), len(p.Recorded.Jobs), p.Recorded.Result.Notes)
			}
			if ratio := report.JCTRatioByWeek(rows[0].Jobs, p.Recorded.Jobs, report.Bootstrap{Seed: 1, Resamples: 10}); ratio.N > 0 && ratio.Point != 1 {
				t.Errorf("the ratio to itself is %v", ratio.Point)
			}
		})
	}
}

// TestReplayOfQueues: queues hold in replays as they did, by the clock of the history.
func TestReplayOfQueues(t *testing.T) {
	tree := queue.Flat("a", "b", "c")
	tree.Queues[1].Guarantee, tree.Queues[2].Limit = []queue.Amount{{Milli: 6000}}, []queue.Amount{{Milli: 4000}}
	p := past{trace: "gen:rw-a", strategy: "fifo", jobs: 200, nodes: 3, start: 1_700_000_000_123_456, first: []engine.Event{{Kind: engine.Shares, Queues: &tree}},
		mark: func(i int, j *workload.Job) { j.Tenant, j.Checkpoint.Load = string("abc"[i%3]), restart }}
	l := p.live(t)
	p.first = nil
	if without := p.live(t); without.result.AvgJCTSec == l.result.AvgJCTSec {
		t.Fatal("these queues change nothing")
	}
	back := readBack(t, l)
	rows, err := back.Replay(t.Context(), []string{"fifo"})
	if err != nil {
		t.Fatal(err)
	}
	want := l.result
	want.JCTBoundSec = back.Recorded.Result.JCTBoundSec // how long those were to run that never ended the history does not tell
	alike(t, "recorded", back.Recorded.Result, want)
	alike(t, "replayed", rows[0].Result, want)
}

func readBack(t *testing.T, l *lived) *Past {
	t.Helper()
	name, _ := saved(t, l, Options{})
	p, err := Read(opened(t, name), ReadOptions{Restart: restart})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// alike compares what a history is summed up to.
func alike(t *testing.T, what string, got, want report.Result) {
	t.Helper()
	if got.DecisionHash != want.DecisionHash {
		t.Errorf("%s: decisions are others", what)
	}
	if !got.Balanced {
		t.Errorf("%s: the books do not balance", what)
	}
	for _, x := range []struct {
		name      string
		got, want int64
	}{{"jobs", got.Jobs, want.Jobs}, {"finished", got.Finished, want.Finished}, {"failed", got.Failed, want.Failed}, {"censored", got.Censored, want.Censored},
		{"commits", got.Commits, want.Commits}, {"events", got.Events, want.Events}, {"longest queue", got.LongestQueue, want.LongestQueue},
		{"preemptions", got.Preemptions, want.Preemptions}, {"restarts", got.Restarts, want.Restarts}} {
		if x.got != x.want {
			t.Errorf("%s: %s is %d, expected %d", what, x.name, x.got, x.want)
		}
	}
	for _, x := range []struct {
		name      string
		got, want float64
	}{{"average JCT", got.AvgJCTSec, want.AvgJCTSec}, {"p95 JCT", got.P95JCTSec, want.P95JCTSec}, {"wait", got.AvgWaitSec, want.AvgWaitSec},
		{"slowdown", got.AvgSlowdown, want.AvgSlowdown}, {"makespan", got.MakespanSec, want.MakespanSec}, {"utilization", got.Utilization, want.Utilization},
		{"device time", got.DeviceSec, want.DeviceSec}, {"useful", got.UsefulDeviceSec, want.UsefulDeviceSec}, {"lost", got.LostDeviceSec, want.LostDeviceSec},
		{"overhead", got.OverheadDeviceSec, want.OverheadDeviceSec}, {"idle", got.IdleDeviceSec, want.IdleDeviceSec}, {"bound", got.JCTBoundSec, want.JCTBoundSec}} {
		if math.Abs(x.got-x.want) > 1e-6*max(1, math.Abs(x.want)) {
			t.Errorf("%s: %s is %.9g, expected %.9g", what, x.name, x.got, x.want)
		}
	}
}

// TestRecordedWithAccidents: the recorded row of a history with preemptions, failing
// nodes and an early end is what the simulation that made it says, and so is its replay
// under the same strategy.
func TestRecordedWithAccidents(t *testing.T) {
	p := busy("tiresias")
	p.until = unit.Time(60 * unit.Hour)
	l := p.live(t)
	back := readBack(t, l)
	want := l.result
	want.JCTBoundSec = back.Recorded.Result.JCTBoundSec // how long those were to run that never ended the history does not tell
	// What bounds and slowdowns are made of is believed here, and known there.
	got := back.Recorded.Result
	want.JCTBoundSec = got.JCTBoundSec
	alike(t, "recorded", got, want)
	if want.Censored == 0 || want.LostDeviceSec == 0 || len(got.Notes) == 0 {
		t.Errorf("nothing to see in this history: %+v, notes %q", want.Completion, got.Notes)
	}
	a := back.Arrivals
	if int64(a.Declared+a.Twice+a.Median) != want.Censored {
		t.Errorf("%d censored jobs are counted %+v", want.Censored, a)
	}
	rows, err := back.Replay(t.Context(), []string{"fifo", "tiresias"})
	if err != nil {
		t.Fatal(err)
	}
	alike(t, "replayed", rows[1].Result, want)
	for _, row := range rows {
		if row.Result.Jobs != want.Jobs || !row.Result.Balanced || row.Result.Censored == 0 {
			t.Errorf("%s: %+v", row.Result.Strategy, row.Result.Completion)
		}
	}
}

// TestArrivals: each end of a job becomes the run time that it should, by hand.
func TestArrivals(t *testing.T) {
	const hour = unit.Hour
	r := newRecorder()
	s := plan.NewState(cluster1())
	add := func(name string, phase plan.Phase, code plan.ReasonCode, ran, work, declared unit.Duration, after ...string) {
		s.Names = append(s.Names, name)
		s.Jobs = append(s.Jobs, plan.Job{Standing: plan.Standing{Phase: phase, Reason: plan.Reason{Code: code}}, Asked: plan.Asked{Declared: declared, TimeLimit: 2 * hour}, Attained: plan.Attained{Executed: work}})
		r.jobs = append(r.jobs, tracked{id: plan.JobID(len(r.jobs)), spec: &workload.Job{Name: name,
			Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Retries: 3, After: after},
			ran: ran, work: float64(work), executed: work})
	}
	add("finished", plan.Finished, plan.DidFinish, 5*hour, 4*hour, hour)
	add("silent", plan.Finished, plan.DidFinish, 3*hour, 0, 0)
	add("failed", plan.Failed, plan.RunFailed, 2*hour, 0, hour)
	add("limit", plan.Failed, plan.OverLimit, 2*hour, 0, hour)
	add("cancelled", plan.Cancelled, plan.ByUser, hour, hour, 9*hour)
	add("unseen", plan.Cancelled, plan.ByUser, 0, 0, 8*hour)
	add("behind", plan.Failed, plan.DependencyEnd, 0, 0, 0, "unseen")
	add("running", plan.Active, plan.Fits, 3*hour, 3*hour, 7*hour)
	add("long", plan.Active, plan.Fits, 9*hour, 9*hour, 7*hour)
	add("waiting", plan.Waiting, plan.New, 0, 0, 0)
	a := r.arrivals(s.View(), restart)
	median := 3 * hour // of 3 h and 4 h
	for i, want := range []workload.Truth{{Duration: 4 * hour}, {Duration: 3 * hour}, {Duration: 8 * hour, FailAfter: 2 * hour}, {Duration: 8 * hour},
		{Duration: 9 * hour}, {Duration: 8 * hour}, {Duration: median}, {Duration: 7 * hour}, {Duration: 18 * hour}, {Duration: median}} {
		if !reflect.DeepEqual(a.truths[i], want) {
			t.Errorf("%s: %+v, expected %+v", s.Names[i], a.truths[i], want)
		}
	}
	if a.Declared != 3 || a.Twice != 1 || a.Median != 2 || len(a.jobs) != 10 {
		t.Errorf("%d jobs, %+v", len(a.jobs), a)
	}
	if a.jobs[2].Retries != 0 || a.jobs[0].Retries != 3 || a.jobs[0].Checkpoint.Load != restart {
		t.Errorf("retries %d and %d, %+v", a.jobs[2].Retries, a.jobs[0].Retries, a.jobs[0].Checkpoint)
	}
}

// TestReplayOfPeople: in the replay of a history with cancellations, a cordon and a lost
// node all of them happen again.
func TestReplayOfPeople(t *testing.T) {
	l := past{trace: "gen:rw-a", strategy: "fifo", jobs: 30, nodes: 2}.live(t)
	l = l.cut(t, 60, func(v plan.View) []engine.Event {
		running, waiting := engine.Event{Kind: engine.Cancel}, engine.Event{Kind: engine.Cancel}
		for id := range plan.JobID(v.Jobs()) {
			switch j := v.Job(id); {
			case j.Phase == plan.Active && v.Run(j.Run).Status == plan.Running:
				running.Job = id
			case j.Phase == plan.Waiting:
				waiting.Job = id
			}
		}
		return []engine.Event{running, waiting, {Kind: engine.Cordon}, {Kind: engine.NodeDown, Node: 1}}
	})
	p := readBack(t, l)
	rows, err := p.Replay(t.Context(), []string{"fifo", "srtf+oracle"})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(p.Recorded.Result.Notes, "\n"); !strings.Contains(notes, "did not get to their end") {
		t.Errorf("the notes say %q", notes)
	}
	if r := p.Recorded.Result; r.Cancelled != 2 || !r.Balanced {
		t.Errorf("recorded: %+v, balanced %v", r.Completion, r.Balanced)
	}
	if a, b := rows[0].Result.Completion, p.Recorded.Result.Completion; a.Cancelled != b.Cancelled || a.Finished != b.Finished || a.Censored != b.Censored || a.P95JCTSec != b.P95JCTSec {
		t.Errorf("replayed: %+v, expected %+v", a, b)
	}
	if r := rows[1].Result; !r.Balanced || len(r.Notes) == 0 || r.Jobs != p.Recorded.Result.Jobs {
		t.Errorf("replayed: %+v", rows[0].Result)
	}
	if _, err := p.Replay(t.Context(), []string{"fifo", "no-such"}); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("an unknown strategy: %v", err)
	}
}

// TestEmptyHistory: there is nothing to save, and it says so.
func TestEmptyHistory(t *testing.T) {
	if _, err := Save(discard{}, func(func(store.Batch) error) error { return nil }, Options{}); err == nil {
		t.Error("a snapshot of nothing was saved")
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
