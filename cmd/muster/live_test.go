package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// TestLive runs the transcripts against a server of one node with four devices, whose
// jobs run until "finish JOB" ends them.
func TestLive(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			p, socket, err := startLive(env)
			if err != nil {
				return err
			}
			env.Values["plane"] = p
			env.Setenv("MUSTER_SOCKET", socket)
			return asMuster(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"finish": finish, "until": until},
	})
}

// asMuster lets the transcripts call this program muster; TestMain does the rest.
func asMuster(env *testscript.Env) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Join(env.WorkDir, "bin")
	env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
	env.Setenv("MUSTER_TEST_AS_MUSTER", "1")
	return errors.Join(os.Mkdir(bin, 0o755), os.Symlink(self, filepath.Join(bin, "muster")))
}

func startLive(env *testscript.Env) (*plane.Plane, string, error) {
	dir, err := os.MkdirTemp("", "mst") // a socket's path must be short
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithCancel(context.Background())
	journal, err := store.Open(filepath.Join(dir, "journal"), store.Options{Now: now})
	if err != nil {
		cancel()
		return nil, "", err
	}
	composition, err := catalogue.Resolve("fifo")
	if err != nil {
		cancel()
		return nil, "", err
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	p, err := plane.Open(plane.Config{Cluster: cluster.Uniform("lab", 1, 4, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16),
		Strategy: composition, Seed: 1, Policy: engine.DefaultPolicy(), Journal: journal, Driver: newIdleDriver(ctx), Now: now, Log: log})
	if err != nil {
		cancel()
		return nil, "", err
	}
	socket := filepath.Join(dir, "muster.sock")
	l, err := door.ListenUnix(socket)
	if err != nil {
		cancel()
		return nil, "", err
	}
	logs := func(name string, _, _ int32) string { return filepath.Join(env.WorkDir, "logs", name) }
	s := server.New(server.Config{Plane: p, Version: "test", Log: log, Logs: logs})
	ended := make(chan error, 2)
	go func() { ended <- p.Run(ctx) }()
	go func() { ended <- s.Serve(ctx, l) }()
	env.Defer(func() {
		cancel()
		<-ended
		<-ended
		journal.Close()
		os.RemoveAll(dir)
	})
	return p, socket, nil
}

// finish ends the present run of a job, by itself.
func finish(ts *testscript.TestScript, neg bool, args []string) {
	p := ts.Value("plane").(*plane.Plane)
	class := plan.NoFailure
	if neg {
		class = plan.UserFailure
	}
	e := engine.Event{Kind: engine.Exited, Ending: engine.Ending{Class: class}}
	ts.Check(p.Query(context.Background(), func(v plan.View) {
		e.Job, _ = p.Find(args[0])
		e.Attempt = v.Job(e.Job).Attempt
	}))
	p.Report(e)
	ts.Check(p.Query(context.Background(), func(plan.View) {})) // taken in
}

// until waits for a job's run to have a status.
func until(ts *testscript.TestScript, _ bool, args []string) {
	p := ts.Value("plane").(*plane.Plane)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		is := ""
		ts.Check(p.Query(context.Background(), func(v plan.View) {
			if id, ok := p.Find(args[0]); ok {
				if run := v.Job(id).Run; run != plan.None {
					is = v.Run(run).Status.String()
				}
			}
		}))
		if is == args[1] {
			return
		}
	}
	ts.Fatalf("%s did not come to be %s", args[0], args[1])
}
