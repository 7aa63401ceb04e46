package shadow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/shadow"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// op is one thing that happens in a history, by numbers that fit any state.
type op struct {
	kind, a, b, c int
	seconds       int
}

// world is a plane that runs, a nature in which only ops happen, and shadows.
type world struct {
	t       failer
	clock   atomic.Int64
	plane   *plane.Plane
	set     *shadow.Set
	journal *store.Store
	jobs    int
	follow  func()
	stop    func()

	mu   sync.Mutex
	runs []run.Order // alive, with the last verb
}

func (w *world) Recover([]run.Order, func(engine.Event)) {}

func (w *world) Order(o run.Order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.runs, func(r run.Order) bool { return r.Job == o.Job && r.Attempt == o.Attempt }); i >= 0 {
		w.runs[i].Verb = o.Verb
	} else if o.Verb == plan.Start {
		w.runs = append(w.runs, o)
	}
}

const epoch = 1_700_000_000_000_000

// begin starts a plane under a strategy, with shadows.
func begin(t failer, strategy string, queue int, shadows ...string) *world {
	t.Helper()
	w := open(t, strategy, queue, shadows...)
	w.follow()
	w.flush()
	return w
}

// open is begin with shadows that do not get to work yet.
func open(t failer, strategy string, queue int, shadows ...string) *world {
	t.Helper()
	w := &world{t: t}
	w.clock.Store(epoch)
	dir, err := os.MkdirTemp("", "muster-shadow-")
	if err != nil {
		t.Fatal(err)
	}
	now := func() unit.Time { return unit.Time(w.clock.Load()) }
	if w.journal, err = store.Open(dir, store.Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	w.plane, err = plane.Open(plane.Config{Cluster: cluster.Uniform("lab", 2, 4, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16),
		Strategy: composition(t, strategy), Seed: 1, Policy: engine.DefaultPolicy(), Journal: w.journal, Driver: w, Now: now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	w.set = shadow.New(shadow.Config{Plane: w.plane, Log: log, Queue: queue})
	for _, name := range shadows {
		if err := w.set.Add(composition(t, name), epoch); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		if err := w.plane.Run(ctx); err != nil {
			panic(err)
		}
	})
	w.follow = func() { all.Go(func() { w.set.Run(ctx) }) }
	w.stop = func() {
		cancel()
		all.Wait()
		if err := errors.Join(w.journal.Close(), os.RemoveAll(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.plane.Follow(ctx, w.set); err != nil {
		t.Fatal(err)
	}
	return w
}

func composition(t failer, name string) catalogue.Composition {
	t.Helper()
	c, err := catalogue.Resolve(name)
	if err == nil {
		c, err = c.Live()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// flush waits until the plane has taken in what was said.
func (w *world) flush() {
	w.t.Helper()
	if err := w.plane.Query(context.Background(), func(plan.View) {}); err != nil {
		w.t.Fatal(err)
	}
}

// report says one thing as the driver, in a batch of its own.
func (w *world) report(e engine.Event) {
	w.plane.Report(e)
	w.flush()
}

// live lets something happen.
func (w *world) live(o op) {
	w.t.Helper()
	w.clock.Add(int64(o.seconds) * int64(unit.Second))
	w.flush()                                                                               // what time alone changes
	request := func(e engine.Event) { _, _ = w.plane.Request(context.Background(), e, "") } // refused, perhaps
	job := plan.JobID(o.a % max(1, w.jobs))
	switch o.kind {
	case 0, 1, 2, 3:
		spec := &workload.Job{Name: fmt.Sprint("j", w.jobs), Tenant: fmt.Sprint("t", o.a%3), User: fmt.Sprint("u", o.b%2),
			Resources: workload.Resources{Gang: int32(1 + o.a%4), Devices: 1,
				Share: unit.Whole}, Program: workload.Program{Command: []string{"true"}}, Estimate: unit.Duration(o.b%500) * unit.Second,
			Traits: workload.Traits{Class: fmt.Sprint("c", o.c%2)}, Retries: 1}
		spec.Checkpoint.OnRequest = o.c%3 == 0
		if o.c%7 == 0 {
			spec.Share = 500
		}
		request(engine.Event{Kind: engine.Submit, Spec: spec})
		w.jobs++
	case 4:
		request(engine.Event{Kind: []engine.Kind{engine.Cancel, engine.Hold, engine.Release, engine.Requeue}[o.b%4], Job: job})
	case 5:
		request(engine.Event{Kind: []engine.Kind{engine.Cordon, engine.Uncordon, engine.Drain, engine.Uncordon}[o.b%4], Node: plan.NodeID(o.a % 2)})
	case 6:
		request(engine.Event{Kind: []engine.Kind{engine.Pause, engine.Unpause, engine.Unpause}[o.b%3]})
	case 7:
		tree := queue.Flat()
		tree.Queues = append(tree.Queues, queue.Queue{Name: "t0", Weight: 1000, Guarantee: []queue.Amount{{Milli: 1000 * int64(o.a%5)}}}, queue.Queue{Name: "t1", Weight: 2000})
		request(engine.Event{Kind: engine.Shares, Queues: &tree})
	default:
		w.happen(o)
	}
}

// happen lets something happen to one of the runs.
func (w *world) happen(o op) {
	w.mu.Lock()
	if len(w.runs) == 0 {
		w.mu.Unlock()
		return
	}
	i := o.a % len(w.runs)
	r := w.runs[i]
	e := engine.Event{Kind: engine.Started, Job: r.Job, Attempt: r.Attempt}
	switch {
	case r.Verb == plan.Stop:
		e.Kind, e.Kept = engine.Stopped, unit.Duration(o.b%300)*unit.Second
	case o.c%5 == 0:
		e.Kind, e.Progress, e.Saved = engine.Observed, int32(o.b%1_000_000), unit.Duration(o.b%50)*unit.Second
	case o.c%5 < 3:
		e.Kind, e.Kept = engine.Exited, unit.Duration(o.b%300)*unit.Second
		e.Class = []plan.FailureClass{plan.NoFailure, plan.NoFailure, plan.UserFailure, plan.NodeFailure}[o.b%4]
	}
	if e.Kind == engine.Stopped || e.Kind == engine.Exited {
		w.runs = slices.Delete(w.runs, i, i+1)
	}
	w.mu.Unlock()
	w.report(e)
}

// batches are the journal, in words.
func (w *world) batches() (lines []string) {
	w.t.Helper()
	err := w.plane.History(func(b store.Batch) error {
		line := fmt.Sprint(b.Seq)
		for _, r := range slices.Concat(b.Events, b.Commits) {
			line += fmt.Sprintf(" %s@%d %s", r.Kind, r.At, r.Data)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return lines
}

// state is the plane's, to the byte.
func (w *world) state() []byte {
	w.t.Helper()
	fork, err := w.plane.Fork(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := fork.State.Save(&b); err != nil {
		w.t.Fatal(err)
	}
	return b.Bytes()
}

// caughtUp waits until the shadows have seen every batch that they were handed.
func (w *world) caughtUp() {
	w.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !w.set.Idle(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal("the shadows do not catch up")
		}
	}
}
