package promise_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// mute is a driver that carries nothing out by itself.
type mute struct{}

func (mute) Recover([]run.Order, func(engine.Event)) {}
func (mute) Order(run.Order)                         {}

// world is a plane with a clock that the test moves, over a journal that outlives it.
type world struct {
	t     *testing.T
	dir   string
	clock atomic.Int64
	plane *plane.Plane
	stop  func()
}

func begin(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir()}
	w.clock.Store(1_700_000_000_000_000)
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// start lets a plane take over the journal.
func (w *world) start() {
	w.t.Helper()
	now := func() unit.Time { return unit.Time(w.clock.Load()) }
	journal, err := store.Open(filepath.Join(w.dir, "journal"), store.Options{Now: now})
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := catalogue.Resolve("fifo")
	if err != nil {
		w.t.Fatal(err)
	}
	w.plane, err = plane.Open(plane.Config{Cluster: cluster.Uniform("lab", 2, 2, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16),
		Strategy: c, Seed: 1, Policy: engine.DefaultPolicy(), Journal: journal, Driver: mute{}, Now: now, Log: quiet()})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.plane.Run(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		if err := journal.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// keeper opens the log of promises.
func (w *world) keeper(change func(*promise.Config)) *promise.Keeper {
	w.t.Helper()
	config := promise.Default(w.plane, quiet())
	config.Path = w.path()
	if change != nil {
		change(&config)
	}
	k, err := promise.Open(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

func (w *world) path() string { return filepath.Join(w.dir, "promises.jsonl") }

func (w *world) log() []byte {
	w.t.Helper()
	data, err := os.ReadFile(w.path())
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

func (w *world) submit(name string) plan.JobID {
	w.t.Helper()
	id, err := w.plane.Request(w.t.Context(), engine.Event{Kind: engine.Submit, Spec: &workload.Job{Name: name, Tenant: "research",
		Resources: workload.Resources{Gang: 4, Devices: 1,
			Share: unit.Whole}, Program: workload.Program{Command: []string{"true"}}, Estimate: 10 * unit.Minute}}, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// report lets a run go on after some time.
func (w *world) report(after unit.Duration, kind engine.Kind, id plan.JobID) {
	w.t.Helper()
	w.clock.Add(int64(after))
	w.plane.Report(engine.Event{Kind: kind, Job: id, Attempt: 1, Ending: engine.Ending{Kept: after}})
	if err := w.plane.Query(w.t.Context(), func(plan.View) {}); err != nil {
		w.t.Fatal(err)
	}
}

// watched lets a keeper look at what became of jobs, until its log has so many lines.
func (w *world) watched(k *promise.Keeper, lines int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var all sync.WaitGroup
	all.Go(func() { k.Run(ctx) })
	for deadline := time.Now().Add(10 * time.Second); bytes.Count(w.log(), []byte("\n")) < lines; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not %d lines:\n%s", lines, w.log())
		}
	}
	cancel()
	all.Wait()
}

// TestRestarts: what was promised outlives the process, and a line that was cut off in the
// writing; what happened while nobody kept promises is scored afterwards; and no byte that
// was written is ever another.
func TestRestarts(t *testing.T) {
	w := begin(t)
	first, second := w.submit("first"), w.submit("second")
	w.report(unit.Second, engine.Started, first)
	k := w.keeper(nil)
	y, err := k.When(t.Context(), second)
	if err != nil || y.MedianUs == nil {
		t.Fatal(y, err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	before := w.log()
	torn := append(bytes.Clone(before), `{"promise":{"version":1,"jo`...)
	if err := os.WriteFile(w.path(), torn, 0o600); err != nil {
		t.Fatal(err)
	}
	w.report(10*unit.Minute, engine.Exited, first)
	w.stop()
	w.start()
	w.report(0, engine.Started, second)
	k = w.keeper(nil)
	w.watched(k, 2+1) // the torn line has an end now, and there is a start
	scores := k.Scores(unit.Time(w.clock.Load()))
	if s := scores[len(scores)-1]; s.Queue != "research" || s.Start.Hits != 1 || s.Start.Promises != 1 || s.End.Pending != 1 {
		t.Errorf("started as promised (%v to %v): %+v", *y.LowUs, *y.HighUs, s)
	}
	w.report(unit.Second, engine.Exited, second)
	w.watched(k, 4)
	scores = k.Scores(unit.Time(w.clock.Load()))
	if s := scores[0]; s.Queue != "" || s.Start.Hits != 1 || s.End.Early != 1 {
		t.Errorf("ended far too early: %+v", s)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	after := w.log()
	if !bytes.HasPrefix(after, torn) {
		t.Errorf("what was written is another:\n%s\nnow\n%s", torn, after)
	}
	if _, err := k.When(t.Context(), w.submit("third")); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("something was said that is not in the log: %v", err)
	}
	if info, err := os.Stat(w.path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v (%v)", info.Mode(), err)
	}
}

// TestAgain: who asks again within some seconds is told the same, however many ask at
// once, and one promise is in the log; later there is another.
func TestAgain(t *testing.T) {
	w := begin(t)
	first, second := w.submit("first"), w.submit("second")
	w.report(unit.Second, engine.Started, first)
	k := w.keeper(func(c *promise.Config) { c.Fresh = 500 * time.Millisecond })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if y, err := k.When(t.Context(), second); err != nil || y.Samples == 0 || y.Samples > 30 { // as many as there is time for
				t.Error(y, err)
			}
		})
	}
	all.Wait()
	if n := bytes.Count(w.log(), []byte("\n")); n != 1 {
		t.Errorf("%d promises:\n%s", n, w.log())
	}
	time.Sleep(600 * time.Millisecond)
	w.clock.Add(int64(unit.Minute))
	if _, err := k.When(t.Context(), second); err != nil || bytes.Count(w.log(), []byte("\n")) != 2 {
		t.Errorf("later: %v\n%s", err, w.log())
	}
}

// TestBudget: where looking ahead takes too long, the waits of others are what is told.
func TestBudget(t *testing.T) {
	w := begin(t)
	first, second, third := w.submit("first"), w.submit("second"), w.submit("third")
	w.report(0, engine.Started, first)
	w.report(10*unit.Minute, engine.Exited, first)
	w.report(0, engine.Started, second)
	k := w.keeper(func(c *promise.Config) { c.Budget = time.Nanosecond })
	y, err := k.When(t.Context(), third)
	if err != nil || y.Samples != 0 || !strings.Contains(y.Basis, "past waits") || y.EndLowUs != nil {
		t.Errorf("%+v (%v)", y, err)
	}
	if !strings.Contains(string(w.log()), `"basis":"`+string(forecast.FromPast)+`"`) {
		t.Errorf("the log has\n%s", w.log())
	}
}

// TestNever: a job that the cluster can never hold is promised nothing, asked or not, and
// told in the words that tell why it waits.
func TestNever(t *testing.T) {
	w := begin(t)
	id, err := w.plane.Request(t.Context(), engine.Event{Kind: engine.Submit, Spec: &workload.Job{Name: "giant", Tenant: "research",
		Resources: workload.Resources{Gang: 1, Devices: 64, Share: unit.Whole}, Program: workload.Program{Command: []string{"true"}}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	k := w.keeper(func(c *promise.Config) { c.After = 0 })
	y, err := k.When(t.Context(), id)
	if err != nil || !y.Never || y.LowUs != nil || y.EndLowUs != nil {
		t.Errorf("%+v (%v)", y, err)
	}
	err = w.plane.Query(t.Context(), func(v plan.View) {
		job, why := view.JobOf(v, plane.JobInfo{}, id, explain.Of(v, nil)), view.WhyOf(v, plane.JobInfo{}, id, explain.Of(v, nil))
		if !job.Never || job.Reason != y.Words || why.Words != y.Words || !strings.Contains(y.Words, "can never start here: wants 64 devices") {
			t.Errorf("when says %q, ls %q, why %q", y.Words, job.Reason, why.Words)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	w.submit("first")
	w.submit("second")
	w.watched(k, 1)
	if log := string(w.log()); strings.Contains(log, "giant") {
		t.Errorf("it was promised something:\n%s", log)
	}
}

// TestReported: a job that says that it is two thirds done after a third of its estimate is
// told to end by that, and so are those who wait for it: by when, why and the calendar.
func TestReported(t *testing.T) {
	w := begin(t)
	first, second := w.submit("first"), w.submit("second")
	w.report(unit.Second, engine.Started, first)
	ends := func() (until, told unit.Time, words string) {
		err := w.plane.Query(t.Context(), func(v plan.View) {
			why := view.WhyOf(v, plane.JobInfo{}, second, explain.Of(v, nil))
			run := view.CalendarOf(v).Entries[0]
			if left := view.JobOf(v, plane.JobInfo{}, first, explain.Of(v, nil)).LeftSec; left != float64(run.ToUs-int64(v.Now()))/1e6 {
				t.Errorf("the job says %v s, the calendar until %d", left, run.ToUs)
			}
			until, told, words = unit.Time(why.Holders[0].UntilUs), unit.Time(run.ToUs), run.Words
		})
		if err != nil {
			t.Fatal(err)
		}
		return until, told, words
	}
	w.clock.Add(int64(200 * unit.Second))
	declared, _, _ := ends()
	w.plane.Report(engine.Event{Kind: engine.Observed, Job: first, Attempt: 1, Observation: engine.Observation{Progress: 666_667}})
	until, told, words := ends()
	now := unit.Time(w.clock.Load())
	// By its pace 100 s are left, by its estimate 400 s.
	if left := until.Sub(now); until != told || left < 100*unit.Second || left > 150*unit.Second || !strings.Contains(words, "by its progress of 66 % and its estimate of 10m") {
		t.Errorf("why says %v, the calendar %v (%s), and by its estimate it was %v", left, told.Sub(now), words, declared.Sub(now))
	}
	k := w.keeper(nil)
	y, err := k.When(t.Context(), second)
	if err != nil || y.MedianUs == nil || unit.Time(*y.LowUs) > until || until > unit.Time(*y.HighUs) || unit.Time(*y.MedianUs) > declared-unit.Time(200*unit.Second) {
		t.Errorf("when says %+v (%v), and why %v from now", y, err, until.Sub(now))
	}
}

// TestComing: that a run will have to give way is told before it does, with the job for
// which and when its protection ends; and no more once that is not so.
func TestComing(t *testing.T) {
	w := begin(t)
	tree := queue.Tree{Protect: 10 * unit.Minute, HalfLife: queue.DefaultHalfLife, Queues: []queue.Queue{queue.Root(), {Name: "research", Weight: 1, Preempt: true}}}
	if _, err := w.plane.Request(t.Context(), engine.Event{Kind: engine.Shares, Queues: &tree}, ""); err != nil {
		t.Fatal(err)
	}
	submit := func(name string, priority int32) plan.JobID {
		id, err := w.plane.Request(t.Context(), engine.Event{Kind: engine.Submit, Spec: &workload.Job{Name: name, Tenant: "research", Priority: priority,
			Resources: workload.Resources{Gang: 4, Devices: 1, Share: unit.Whole}, Program: workload.Program{Command: []string{"true"}}, Estimate: 5 * unit.Hour}}, "")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	k := w.keeper(func(c *promise.Config) { c.Every, c.After = 0, unit.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { k.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()
	low := submit("low", 0)
	w.report(unit.Second, engine.Started, low)
	says := func(want string) {
		t.Helper()
		got := ""
		for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			if err := w.plane.Query(t.Context(), func(v plan.View) { got = k.Coming(v, low) }); err != nil {
				t.Fatal(err)
			}
			if regexp.MustCompile("^" + want + "$").MatchString(got) {
				return
			}
		}
		t.Fatalf("it says %q, want %q", got, want)
	}
	w.clock.Add(int64(4 * unit.Minute))
	high := submit("high", 1)
	says(`will give way in about 6m..s to high`)
	w.clock.Add(int64(unit.Minute))
	w.submit("another") // so that the plane looks at its clock
	says(`will give way in about 5m..s to high`)
	if _, err := w.plane.Request(t.Context(), engine.Event{Kind: engine.Cancel, Job: high}, ""); err != nil {
		t.Fatal(err)
	}
	says("")
	now := unit.Time(w.clock.Load())
	if _, err := w.plane.Request(t.Context(), engine.Event{Kind: engine.Close, Node: 0, Bounds: engine.Bounds{From: now.Add(30 * unit.Minute), To: now.Add(unit.Hour)}}, ""); err != nil {
		t.Fatal(err)
	}
	says("will give way in about 30m00s: node0 is closed for maintenance then")
}
