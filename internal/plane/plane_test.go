package plane

import (
	"bytes"
	"context"
	"encoding/gob"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/steady"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// TestKeys: a request under a key is answered the same however often it comes and
// happens once: in two batches, twice in one batch, and after a restart.
func TestKeys(t *testing.T) {
	w := newBench(t, t.TempDir(), "fifo")
	defer w.close()
	first := w.submit("before", 1)
	one := w.ask(submission("a", 1), "key-a")
	again := w.ask(submission("a", 1), "key-a")
	if one.Err != nil || again != one || one.Job == first {
		t.Errorf("the same key twice: %+v, then %+v", one, again)
	}
	x, y, other := request(submission("b", 1), "key-b"), request(submission("b", 1), "key-b"), request(submission("b", 1), "")
	w.step(x, y, other)
	rx, ry, ro := <-x.reply, <-y.reply, <-other.reply
	if rx.Err != nil || ry != rx || ro.Err == nil {
		t.Errorf("the same key twice in a batch: %+v and %+v; without a key: %+v", rx, ry, ro)
	}
	w.start()
	if r := w.ask(submission("b", 1), "key-b"); r != rx {
		t.Errorf("after a restart: %+v, before it %+v", r, rx)
	}
	cancel := w.ask(engine.Event{Kind: engine.Cancel, Job: one.Job}, "key-c")
	if r := w.ask(engine.Event{Kind: engine.Cancel, Job: one.Job}, "key-c"); r != cancel || r.Err != nil {
		t.Errorf("a cancellation sent twice is answered %+v, then %+v", cancel, r)
	}
	if r := w.ask(engine.Event{Kind: engine.Cancel, Job: one.Job}, ""); r.Err == nil {
		t.Error("a job that is cancelled can be cancelled again")
	}
	if n := w.plane.engine.View().Jobs(); n != 3 {
		t.Errorf("%d jobs were made of 3 requests", n)
	}
	w.clock = w.clock.Add(unit.Day + unit.Second)
	if r := w.ask(submission("b", 1), "key-b"); r.Err == nil {
		t.Error("a key is remembered for longer than a day")
	}
	w.verify()
}

// TestRefusedKey: what was refused may be sent again under the same key.
func TestRefusedKey(t *testing.T) {
	w := newBench(t, t.TempDir(), "fifo")
	defer w.close()
	e := submission("b", 1)
	e.Spec.After = []string{"a"}
	if r := w.ask(e, "key"); r.Err == nil {
		t.Fatal("a job may come after one that does not exist")
	}
	w.submit("a", 1)
	if r := w.ask(e, "key"); r.Err != nil {
		t.Errorf("what was refused is not looked at again: %v", r.Err)
	}
}

// TestClockJumps: whatever the clock does, time as the engine knows it does not go
// back and does not stand still, so that back-offs end.
func TestClockJumps(t *testing.T) {
	for _, jump := range []unit.Duration{-unit.Hour, -365 * unit.Day, 365 * unit.Day, -unit.Duration(epoch) - unit.Hour} {
		for _, restart := range []string{"running", "restarted"} {
			t.Run(jump.String()+" "+restart, func(t *testing.T) {
				w := newBench(t, t.TempDir(), "tiresias")
				defer w.close()
				e := submission("flaky", 1)
				e.Spec.Retries = 3
				id := w.ask(e, "").Job
				w.settle()
				last := w.plane.engine.View().Now()
				w.clock = w.clock.Add(jump)
				if restart == "restarted" {
					w.start()
				}
				w.exit(member{id, 1}, plan.UserFailure)
				if w.phase(id) != plan.Backoff {
					t.Fatalf("after a failure the job is %s", w.phase(id))
				}
				for range 30 { // of a back-off of 10 seconds
					w.clock = w.clock.Add(unit.Second)
					w.step()
					now := w.plane.engine.View().Now()
					if now <= last {
						t.Fatalf("time went from %d to %d", last, now)
					}
					last = now
					if sleep := w.plane.until(w.wake); sleep < 0 || sleep > time.Minute {
						t.Fatalf("the plane sleeps for %s", sleep)
					}
				}
				w.settle()
				if w.phase(id) != plan.Active {
					t.Errorf("30 seconds later the job is %s", w.phase(id))
				}
				w.finishAll()
				w.verify()
			})
		}
	}
}

// TestClockAheadAndBack: a clock that went a day ahead and came back leaves the state as it is without that.
func TestClockAheadAndBack(t *testing.T) {
	states := map[unit.Duration][]byte{}
	for _, leap := range []unit.Duration{0, unit.Day} {
		w := newBench(t, t.TempDir(), "tiresias")
		defer w.close()
		var passed, set unit.Duration
		w.config.Now = steady.New(func() (unit.Time, unit.Duration) { return epoch.Add(passed + set), passed }, w.config.Log).Now
		w.start()
		for _, name := range []string{"a", "b", "c"} {
			w.submit(name, 2)
		}
		w.settle()
		for minute := range 60 {
			if set = 0; minute >= 20 && minute < 35 {
				set = leap
			}
			passed += unit.Minute
			w.step()
			if off := w.plane.engine.View().Now().Sub(epoch.Add(passed)); off < 0 || off > passed/100 {
				t.Fatalf("minute %d: time is off by %s", minute, off)
			}
		}
		w.plane.engine.State().Age(w.plane.engine.View().Now())
		states[leap] = state(t, w.plane)
	}
	if !bytes.Equal(states[0], states[unit.Day]) {
		t.Error("the state is another after the clock went a day ahead and back")
	}
}

// TestClockCatchesUp: time that ran ahead of a clock that went back meets it again.
func TestClockCatchesUp(t *testing.T) {
	w := newBench(t, t.TempDir(), "fifo")
	defer w.close()
	w.clock = w.clock.Add(-unit.Hour)
	w.step()
	if w.plane.ahead != unit.Hour {
		t.Fatalf("time is %s ahead after the clock went back by an hour", w.plane.ahead)
	}
	for range 3 * 60 {
		w.clock = w.clock.Add(unit.Minute)
		w.step()
	}
	if w.plane.ahead != 0 || w.plane.engine.View().Now() != w.clock {
		t.Errorf("three hours later time is still %s ahead", w.plane.ahead)
	}
}

// TestStrategyChanges: a journal goes through three strategies; nothing is lost, and
// all of it is decided again by what decided it.
func TestStrategyChanges(t *testing.T) {
	w := newBench(t, t.TempDir(), "tiresias")
	defer w.close()
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for round, strategy := range []string{"tiresias", "srtf", "tiresias"} {
		if round > 0 {
			w.strategy(strategy)
			w.start()
		}
		for i, name := range names {
			e := submission(name+strategy+string(rune('0'+round)), int32(1+i%4))
			e.Spec.Estimate = unit.Duration(1+len(names)-i) * unit.Hour
			if r := w.ask(e, ""); r.Err != nil {
				t.Fatal(r.Err)
			}
			w.clock = w.clock.Add(20 * unit.Minute)
			w.settle()
		}
		if round == 1 {
			w.plane.lastSnapshot()
		}
	}
	if n := w.plane.engine.View().Jobs(); n != 3*len(names) {
		t.Fatalf("%d jobs of %d are there", n, 3*len(names))
	}
	w.finishAll()
	v := w.plane.engine.View()
	for id := range plan.JobID(v.Jobs()) {
		if p := v.Job(id).Phase; p != plan.Finished {
			t.Errorf("%s is %s", v.Name(id), p)
		}
	}
	found := w.verify()
	t.Logf("%d batches, %d commits decided again by three strategies in turn", found.Batches, found.Commits)
}

// TestSnapshot: what follows a snapshot is folded onto it, and the batches before it
// may be gone.
func TestSnapshot(t *testing.T) {
	w := newBench(t, t.TempDir(), "tiresias")
	defer w.close()
	w.config.SnapshotEvery = 5
	w.start()
	for i := range 40 {
		w.submit("j"+string(rune('A'+i)), int32(1+i%3))
		w.clock = w.clock.Add(unit.Minute)
		w.settle()
		if m := w.nature.members(); i%3 == 0 && len(m) > 0 {
			w.exit(m[0], plan.NoFailure)
		}
	}
	w.plane.lastSnapshot()
	w.submit("last", 1)
	before, jobs := state(t, w.plane), infos(w.plane)
	done, err := w.journal.Compact()
	if err != nil || done.Batches == 0 {
		t.Fatalf("compacting dropped %d batches, %v", done.Batches, err)
	}
	fresh := w.rebuilt()
	if string(state(t, fresh)) != string(before) {
		t.Error("after a snapshot and what follows it the state is another")
	}
	sameInfo(t, w.plane, fresh)
	if n := len(jobs[0].Dossier); n == 0 || jobs[0].Dossier[0].Notes == nil {
		t.Errorf("the dossier of the first job has %d decisions", n)
	}
	w.start()
	w.finishAll()
}

// TestOldSnapshot: a snapshot of another format is passed over where the journal has
// everything, and refused by name where it has not.
func TestOldSnapshot(t *testing.T) {
	w := newBench(t, t.TempDir(), "tiresias")
	defer w.close()
	w.start()
	for i := range 6 {
		w.submit("j"+string(rune('A'+i)), int32(1+i%3))
		w.clock = w.clock.Add(unit.Minute)
		w.settle()
	}
	w.plane.lastSnapshot()
	w.submit("last", 1)
	type old struct { // what a State was once
		Version int
		State   struct {
			Runs []struct{ Terms struct{ Plan int32 } }
		}
	}
	was := old{Version: 3}
	was.State.Runs = append(was.State.Runs, struct{ Terms struct{ Plan int32 } }{})
	var state3, b bytes.Buffer
	if err := gob.NewEncoder(&state3).Encode(was); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewEncoder(&b).Encode(image{State: state3.Bytes()}); err != nil {
		t.Fatal(err)
	}
	if err := w.journal.SaveSnapshot(w.journal.Last(), b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if fresh := w.rebuilt(); string(state(t, fresh)) != string(state(t, w.plane)) {
		t.Error("from the journal alone the state is another")
	}
	if done, err := w.journal.Compact(); err != nil || done.Batches == 0 {
		t.Fatalf("compacting dropped %d batches, %v", done.Batches, err)
	}
	if _, err := Open(w.config); err == nil || !strings.Contains(err.Error(), "the saved state has format 3, this program reads") ||
		!strings.Contains(err.Error(), "use the program that wrote it; without it: ") {
		t.Errorf("without the journal's beginning it is taken: %v", err)
	}
}

// TestClosed: after the end requests are refused and reports dropped; nobody hangs.
func TestClosed(t *testing.T) {
	w := newBench(t, t.TempDir(), "fifo")
	defer w.close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.plane.Run(ctx) }()
	if _, err := w.plane.Request(t.Context(), submission("a", 1), ""); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := w.plane.Request(t.Context(), submission("b", 1), ""); err == nil {
		t.Error("a request is accepted after the end")
	}
	for range 2 * cap(w.plane.inbox) {
		w.plane.Report(engine.Event{Kind: engine.Observed})
	}
	if last, ok, err := w.journal.LatestSnapshot(); err != nil || !ok || last.Seq != w.journal.Last() {
		t.Errorf("no snapshot at the end: %v, %v", ok, err)
	}
}
