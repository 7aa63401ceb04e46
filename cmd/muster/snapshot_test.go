package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// TestUpRecoversLoadedSnapshot: a control plane that was killed is saved from its state
// directory, and another one goes on from what was loaded: it knows what has finished,
// and what was still to be done is done.
func TestUpRecoversLoadedSnapshot(t *testing.T) {
	p, _, _ := toKill(t, 1, 1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
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
	p.state, p.client = loaded, client.New(filepath.Join(loaded, "s"))
	p.start()
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
