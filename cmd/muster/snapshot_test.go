package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// TestUpRecoversLoadedSnapshot: a control plane that was killed is saved from its state
// directory, and another one goes on from what was loaded: it knows what has finished,
// and what was still to be done is done.
func TestUpRecoversLoadedSnapshot(t *testing.T) {
	t.Parallel()
	p, _, _ := toKill(t, 1, 1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, name := range []string{"done", "held"} {
		job := workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole},
			Program: workload.Program{Command: []string{"/bin/sh", "-c", "exit 0"}}}
		if _, err := p.client.Submit(ctx, []workload.Job{job}, ""); err != nil {
			t.Fatal(err)
		}
		if name == "done" {
			if j, err := p.client.Wait(ctx, name); err != nil || j.Phase != "finished" {
				t.Fatalf("%s is %s, %v", name, j.Phase, err)
			}
			if _, err := p.client.Pause(ctx); err != nil {
				t.Fatal(err)
			}
		} else if _, err := p.client.ChangeJob(ctx, name, "hold"); err != nil {
			t.Fatal(err)
		}
	}
	p.kill()
	file := filepath.Join(t.TempDir(), "cluster.zip")
	loaded, err := os.MkdirTemp("", "muster-loaded-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(loaded) })
	for _, args := range [][]string{{"snapshot", "save", "--state", p.state, file}, {"snapshot", "load", file, "--state", loaded},
		{"replay", "--verify", "--state", loaded}} {
		cmd := root()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		if err := cmd.Execute(); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	}
	p.goOnIn(loaded)
	j, err := p.client.Job(ctx, "done")
	if err != nil || j.Phase != "finished" {
		t.Errorf("done is %s, %v", j.Phase, err)
	}
	if j, err = p.client.Job(ctx, "held"); err != nil || j.Phase != "held" {
		t.Errorf("held is %s, %v", j.Phase, err)
	}
	if _, err := p.client.ChangeJob(ctx, "held", "release"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Unpause(ctx); err != nil {
		t.Fatal(err)
	}
	if j, err = p.client.Wait(ctx, "held"); err != nil || j.Phase != "finished" {
		t.Errorf("released, held is %s (%s), %v", j.Phase, j.Reason, err)
	}
}

// TestSnapshotsByThemselves: a control plane saves a snapshot as often as it is told, keeps the
// latest of them, and names the newest where its database cannot be opened; what that holds can
// be loaded.
func TestSnapshotsByThemselves(t *testing.T) {
	t.Parallel()
	p, _, _ := toKill(t, 6, 1, 1)
	if files := snapshotsOf(p.state); len(files) > 1 {
		t.Errorf("snapshots %v at the first start", files)
	}
	p.muster("submit", "--name", "there", "--", "true")
	p.kill()
	p.flags = []string{"--snapshot-every", "50ms"}
	p.start()
	first := snapshotsOf(p.state)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		files := snapshotsOf(p.state)
		if len(files) > snapshotsKept+1 {
			t.Fatalf("snapshots %v", files)
		}
		if len(files) == snapshotsKept && (len(first) == 0 || files[0] != first[0]) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("snapshots %v after 30 s", files)
		}
	}
	p.kill()
	database, err := os.OpenFile(filepath.Join(p.state, "journal", "journal.db"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := database.WriteAt(bytes.Repeat([]byte("x"), 4096), 0); err != nil {
		t.Fatal(err)
	}
	// The log of what is to be written into it would heal it.
	if err := errors.Join(database.Close(), os.Remove(database.Name()+"-wal")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := exec.CommandContext(ctx, os.Args[0], "up", "--state", p.state, "--page", "off")
	again.Env = append(os.Environ(), "MUSTER_TEST_AS_MUSTER=1")
	said, err := again.CombinedOutput()
	files := snapshotsOf(p.state)
	if err == nil || !strings.Contains(string(said), files[len(files)-1]) || !strings.Contains(string(said), goOn) {
		t.Fatalf("a damaged database is opened, or the snapshot is not named: %v\n%s", err, said)
	}
	loaded := filepath.Join(t.TempDir(), "loaded")
	p.muster("snapshot", "load", files[len(files)-1], "--state", loaded)
	p.muster("replay", "--verify", "--state", loaded)
	p.flags = nil
	p.goOnIn(loaded)
	if j, err := p.client.Job(t.Context(), "there"); err != nil {
		t.Errorf("the job is %+v, %v", j, err)
	}
}
