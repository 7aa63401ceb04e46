package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// look runs a window forward under a strategy.
func look(t *testing.T, w *Window, strategy string, horizon unit.Duration) ahead.Future {
	t.Helper()
	composition, err := catalogue.Parse("test", strategy)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ahead.Run(t.Context(), ahead.Config{State: w.State, Policy: w.Setting.Policy, Beliefs: w.Beliefs, Arrivals: ahead.Arriving(w.Arrivals),
		Later: w.Later, Start: w.Start, Horizon: horizon, Scheduler: func() (schedule.Scheduler, error) {
			built, err := composition.Build(catalogue.Env{Seed: w.Setting.Seed}, false)
			return built.Scheduler, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestWindow: the last part of a history, run forward under the strategy that decided
// it, happens again: every job that was seen to its end ends when it did.
func TestWindow(t *testing.T) {
	for _, strategy := range []string{"fifo", "fifo-strict", "las"} {
		l := past{trace: "gen:rw-a", strategy: strategy, jobs: 150, nodes: 3}.live(t)
		from, to := l.batches[len(l.batches)/3].Events[0].At, l.batches[len(l.batches)-1].Events[0].At
		w, err := ReadWindow(t.Context(), l.history, from, ReadOptions{Restart: restart})
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := ReadWindow(t.Context(), l.history, unit.Never, ReadOptions{Restart: restart})
		if err != nil {
			t.Fatal(err)
		}
		if w.State.Now > from || w.To != to || len(w.Arrivals)+len(w.State.Jobs) != 150 || len(w.State.Jobs) == 0 || len(recorded.Arrivals) != 0 {
			t.Fatalf("%s: the window is from %d to %d with %d jobs before and %d after", strategy, w.State.Now, w.To, len(w.State.Jobs), len(w.Arrivals))
		}
		f := look(t, w, strategy, 0)
		compared := 0
		for _, fate := range f.Fates {
			if j := recorded.State.View().Job(fate.Job); j.Phase == plan.Finished {
				compared++
				if off := fate.End.Sub(j.Ended); off < -2 || off > 2 { // work is rounded to microseconds
					t.Errorf("%s: job %s ends at %d, it ended at %d", strategy, fate.Name, fate.End, j.Ended)
				}
			}
		}
		if compared < 60 {
			t.Errorf("%s: only %d jobs were compared", strategy, compared)
		}
	}
}

// TestWindowSwitched: a window knows that another strategy decided when it began.
func TestWindowSwitched(t *testing.T) {
	l := past{trace: "gen:rw-a", strategy: "las", jobs: 60, nodes: 3}.live(t)
	setting, err := plane.ReadSetting(firstSetting(t, l))
	if err != nil {
		t.Fatal(err)
	}
	setting.Strategy = "fifo"
	data, err := json.Marshal(&setting)
	if err != nil {
		t.Fatal(err)
	}
	n := len(l.batches) / 2
	cut := l.cut(t, n, func(plan.View) []engine.Event { return []engine.Event{{Kind: engine.Switched, Setting: data}} })
	for _, x := range []struct {
		from     unit.Time
		switched bool
	}{{0, true}, {unit.Never, false}} {
		w, err := ReadWindow(t.Context(), cut.history, x.from, ReadOptions{})
		if err != nil || w.Switched != x.switched || w.Setting.Strategy != "fifo" {
			t.Errorf("from %d: %+v, %v", x.from, w.Setting.Strategy, err)
		}
	}
}

// firstSetting is what a history began with.
func firstSetting(t *testing.T, l *lived) []byte {
	t.Helper()
	var e engine.Event
	if err := json.Unmarshal(l.batches[0].Events[0].Data, &e); err != nil {
		t.Fatal(err)
	}
	return e.Setting
}

// TestWindowCancelled: nobody waits for a history to be read that nobody waits for.
func TestWindowCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := past{trace: "gen:rw-a", strategy: "fifo", jobs: 400, nodes: 3}.live(t)
	if _, err := ReadWindow(ctx, l.history, 0, ReadOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%d batches: %v", len(l.batches), err)
	}
}

// TestWindowWeek measures what the question costs how last week would have been:
// MUSTER_LONG=1 with -v.
func TestWindowWeek(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("measures for half a minute: set MUSTER_LONG=1")
	}
	for _, load := range []float64{0.9, 1.3} {
		l := past{trace: "gen:philly?days=7", strategy: "tiresias", nodes: 74, perNode: 8, load: load}.live(t)
		began := time.Now()
		took := func(what string) {
			t.Logf("%-20s %8.1f ms", what, time.Since(began).Seconds()*1e3)
			began = time.Now()
		}
		name, _ := saved(t, l, Options{})
		began = time.Now()
		file := opened(t, name)
		took("file opened")
		w, err := ReadWindow(t.Context(), file.Each, 0, ReadOptions{Restart: restart})
		if err != nil {
			t.Fatal(err)
		}
		took("file read")
		dir := filepath.Join(t.TempDir(), "state")
		if err := Load(file, dir); err != nil {
			t.Fatal(err)
		}
		journal, err := store.Open(filepath.Join(dir, "journal"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		began = time.Now()
		history := func(each func(store.Batch) error) error { return journal.Replay(1, each) }
		if _, err := ReadWindow(t.Context(), history, 0, ReadOptions{Restart: restart}); err != nil {
			t.Fatal(err)
		}
		took("journal read")
		last, err := ReadWindow(t.Context(), l.history, unit.Never, ReadOptions{Restart: restart})
		if err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		last.State.Copy()
		took("state copied")
		for _, strategy := range []string{"tiresias", "fifo", "fifo+conservative", "srtf+declared"} {
			f := look(t, w, strategy, w.To.Sub(w.State.Now))
			took(strategy)
			t.Logf("load %g: %d batches, %d jobs, %d preemptions recorded; %d steps, %d commits, %d preemptions", load, len(l.batches), len(w.Arrivals), l.result.Preemptions,
				f.Steps, f.Result.Commits, f.Result.Preemptions)
		}
	}
}
