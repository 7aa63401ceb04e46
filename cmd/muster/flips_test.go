package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/client"
)

// TestFlips: a bit flipped, or a file cut, anywhere in the journal of a control plane that was killed: it starts again
// with all its jobs, or says what is lost and goes on by the command that it prints, with what is intact or the newest
// snapshot. Jobs run after that.
func TestFlips(t *testing.T) {
	t.Parallel()
	rounds := 5
	if os.Getenv("MUSTER_LONG") != "" {
		rounds = 40
	}
	p := stoppedPlane(t)
	p.flags = []string{"--snapshot-every", "1s"}
	p.start()
	p.history()
	for deadline := time.Now().Add(time.Minute); len(snapshotsOf(p.state)) < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no snapshot was saved")
		}
	}
	p.kill()
	again, accepted := 0, 0
	for seed := range rounds {
		chance := rand.New(rand.NewPCG(uint64(seed), 4))
		name := [...]string{"journal.db", "journal.db-wal", "head"}[chance.IntN(3)]
		q := stoppedPlane(t)
		for _, folder := range []string{"journal", "snapshots", "attempts"} {
			if err := os.CopyFS(filepath.Join(q.state, folder), os.DirFS(filepath.Join(p.state, folder))); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(q.state, "journal", name)
		data, err := os.ReadFile(file)
		if err != nil || len(data) == 0 {
			t.Fatalf("%s: %d bytes, %v", file, len(data), err)
		}
		at := chance.IntN(len(data))
		what := fmt.Sprintf("%s cut at %d of %d", name, at, len(data))
		if chance.IntN(4) > 0 {
			data[at] ^= 1 << chance.IntN(8)
			what = fmt.Sprintf("%s: a bit of byte %d of %d flipped", name, at, len(data))
		} else {
			data = data[:at]
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		said, up, stop := q.comesUp()
		if !up {
			accepted++
			if !strings.Contains(said, goOn) {
				t.Errorf("%s: it does not start, and prints no command to go on with:\n%s", what, said)
				continue
			}
			if said, up, stop = q.comesUp(strings.Fields(goOn)[2:]...); !up {
				t.Errorf("%s: %s does not go on:\n%s", what, goOn, said)
				continue
			}
		} else if all, err := q.client.Jobs(t.Context(), client.ListOptions{All: true}); err != nil || len(all.Jobs) != keptJobs {
			t.Errorf("%s: it starts with %d of %d jobs and asks nothing; %v", what, len(all.Jobs), keptJobs, err)
		}
		again++
		q.muster("submit", "--wait", "--name", "another", "--", "true")
		stop()
	}
	t.Logf("%d of %d went on, %d of them by %s", again, rounds, accepted, goOn)
}

// comesUp starts the control plane, and reports what it said and whether it answers; stop kills it.
func (p *controlPlane) comesUp(flags ...string) (said string, up bool, stop func()) {
	p.t.Helper()
	file := filepath.Join(p.state, "said")
	out, err := os.Create(file)
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	cmd := p.command(append([]string{"up", "--state", p.state, "--socket", p.socket(), "--slots", "6", "--slot-cpu", "200m", "--allow-root"}, flags...)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ctx, ended := context.WithTimeout(p.t.Context(), time.Minute)
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed, or it refused
		ended()
		close(gone)
	}()
	stop = func() {
		_ = cmd.Process.Kill() // it may have ended
		<-gone
	}
	for p.client = client.New(p.socket()); ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if _, err := p.client.Version(ctx); err == nil {
			return "", true, stop
		}
	}
	stop()
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text), false, stop
}
