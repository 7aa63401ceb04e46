package local

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/local/supervise"
)

// TestOrdersAreRepeated: who takes a worker over is told what its supervisor may have heard
// and not carried out, the last of each sort in the order in which it was given.
func TestOrdersAreRepeated(t *testing.T) {
	d := New(Config{State: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	a := newAttempt(d, run.Order{Name: "j", Attempt: 1, Spec: &workload.Job{}, Workers: make([]run.Worker, 1)})
	if err := os.MkdirAll(a.dirs[0], 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(a.dirs[0], "orders")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	orders, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	read := func() string {
		b := make([]byte, 4096)
		n, err := orders.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	for _, o := range []supervise.Order{supervise.Suspend, supervise.Grant(cgroup.Limits{CPU: 5}), supervise.Resume, supervise.Batch(8),
		supervise.Grant(cgroup.Limits{CPU: 7}), supervise.Batch(16), supervise.Halt, supervise.Leave} {
		a.send(0, o)
	}
	read()
	a.note(0, &supervise.Record{Kind: supervise.TakenOver})
	if got, want := read(), "resume\ngrant 7 0 0\nbatch 16\nstop\nleave\n"; got != want {
		t.Errorf("repeated %q, expected %q", got, want)
	}
}
