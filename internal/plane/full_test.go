package plane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// smallDisk mounts a file system of its own that is soon full; resize changes that.
func smallDisk(t *testing.T) (dir string, resize func(size string)) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(size string) {
		t.Helper()
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
}

// big is a submission that fills the disk.
func big(name string, bytes int) engine.Event {
	e := submission(name, 1)
	e.Spec.Env = []string{"FILL=" + strings.Repeat("x", bytes)}
	return e
}

// TestFullDisk: with no space left requests get a clear error and reports are kept;
// questions are still answered. Nothing that was acknowledged is lost, and all goes on when there is
// space again, with the strategy that it was restarted with meanwhile.
func TestFullDisk(t *testing.T) {
	dir, resize := smallDisk(t)
	w := newBench(t, dir, "tiresias")
	defer w.close()
	running := w.submit("running", 1)
	w.settle()
	acknowledged := w.fill()
	before := state(t, w.plane)
	w.exit(member{running, 1}, plan.NoFailure)
	if len(w.plane.lost) != 1 || string(state(t, w.plane)) != string(before) {
		t.Fatalf("%d reports are kept, or the state went on without its journal", len(w.plane.lost))
	}
	if err := w.switchTo("fifo"); !errors.Is(err, store.ErrFull) || w.plane.Strategy() != "tiresias" || len(w.plane.lost) != 1 {
		t.Errorf("a switch that is not durable: %v, %s decides, %d reports are kept", err, w.plane.Strategy(), len(w.plane.lost))
	}
	asked := false
	q := message{query: func(v plan.View) { asked = v.Jobs() == len(acknowledged)+1 }, reply: make(chan Reply, 1)}
	w.step(q)
	if r := <-q.reply; r.Err != nil || !asked {
		t.Errorf("a question on a full disk: %v", r.Err)
	}
	w.plane.snapshot() // cannot be saved, which is no reason to end
	w.plane.lastSnapshot()
	w.strategy("srtf")
	w.start() // the start itself cannot be written
	if r := w.ask(submission("too much", 1), ""); !errors.Is(r.Err, store.ErrFull) {
		t.Errorf("after a restart: %v", r.Err)
	}
	if err := w.plane.Refusing(); !errors.Is(err, store.ErrFull) {
		t.Errorf("on a full disk it says of what it refuses: %v", err)
	}
	w.nature.alive[member{running, 1}] = plan.Start // the driver finds it again, and reports again
	w.exit(member{running, 1}, plan.NoFailure)

	resize("64m")
	w.step()
	if len(w.plane.lost) != 0 || w.phase(running) != plan.Finished {
		t.Errorf("with space again %d reports are kept, the job is %s", len(w.plane.lost), w.phase(running))
	}
	w.submit("again", 1)
	if err := w.plane.Refusing(); err != nil {
		t.Errorf("with space again it refuses: %v", err)
	}
	for _, name := range acknowledged {
		if _, ok := w.plane.Find(name); !ok {
			t.Errorf("%s was acknowledged and is lost", name)
		}
	}
	if _, ok := w.plane.Find("too much"); ok {
		t.Error("a job is there that was refused")
	}
	w.finishAll()
	found := w.verify()
	t.Logf("%d jobs fitted; %d commits decided again without a difference", len(acknowledged), found.Commits)
}

// fill submits jobs until there is no space.
func (w *bench) fill() (acknowledged []string) {
	w.t.Helper()
	size := 20_000
	for i := range 1000 {
		name := fmt.Sprint("fill", i)
		r := w.ask(big(name, size), "key-"+name)
		if r.Err == nil {
			acknowledged = append(acknowledged, name)
			continue
		}
		if !errors.Is(r.Err, store.ErrFull) || !strings.Contains(r.Err.Error(), "not accepted, the journal cannot be written") {
			w.t.Fatalf("a request without space: %v", r.Err)
		}
		if len(acknowledged) < 5 {
			w.t.Fatalf("only %d jobs fitted", len(acknowledged))
		}
		if size == 0 {
			return acknowledged
		}
		size /= 4
	}
	w.t.Fatal("the disk does not fill")
	return nil
}

// TestFullDiskLive is the same through Run: it does not end, and goes on by itself.
func TestFullDiskLive(t *testing.T) {
	dir, resize := smallDisk(t)
	w := newBench(t, dir, "fifo")
	defer w.close()
	began := time.Now()
	w.config.Now = func() unit.Time { return epoch.Add(unit.Duration(time.Since(began).Microseconds())) }
	w.config.SnapshotEvery = 3
	w.plane = w.rebuilt()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.plane.Run(ctx) }()
	for i, size := 0, 20_000; size > 0; i++ {
		_, err := w.plane.Request(t.Context(), big(fmt.Sprint("fill", i), size), "")
		if errors.Is(err, store.ErrFull) {
			size /= 4
		} else if err != nil {
			t.Fatal(err)
		}
	}
	w.plane.Report(engine.Event{Kind: engine.Started, Job: 0, Attempt: 1})
	status := func() (s plan.RunStatus) {
		if err := w.plane.Query(t.Context(), func(v plan.View) { s = v.Run(v.Job(0).Run).Status }); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := status(); s != plan.Starting {
		t.Errorf("without a journal the run is %s", s)
	}
	resize("64m")
	until := func(what string, ok func(v plan.View) bool) {
		t.Helper()
		good := false
		for deadline := time.Now().Add(time.Minute); !good; time.Sleep(10 * time.Millisecond) {
			if err := w.plane.Query(t.Context(), func(v plan.View) { good = ok(v) }); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("with space again %s", what)
			}
		}
	}
	until("the start is not known", func(v plan.View) bool { return v.Run(v.Job(0).Run).Status == plan.Running })
	w.plane.Report(engine.Event{Kind: engine.Exited, Job: 0, Attempt: 1})
	until("no waiting job takes a free place", func(v plan.View) bool { return v.Job(0).Phase == plan.Finished && v.Job(4).Phase == plan.Active })
	if _, err := w.plane.Request(t.Context(), engine.Event{Kind: engine.Submit, Spec: &workload.Job{Name: "again",
		Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}}, ""); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.verify()
}
