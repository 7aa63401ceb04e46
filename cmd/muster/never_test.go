package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/view"
)

// TestNeverIsNotWaitedFor: a job that can never start here keeps nobody waiting: not those behind it under a strict order,
// and nobody who waits for it, who is told and exits with the code of what did not start.
func TestNeverIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	p := planeOf(t, "order: fifo-strict\n", "--slots", "2", "--slot-cpu", "500m", "--grace", "1s")
	never := func(name string, code, want int, said string) {
		t.Helper()
		if code != want || strings.Count(said, "can never start") != 1 || !strings.Contains(said, name) {
			t.Errorf("exit code %d, expected %d: %q", code, want, said)
		}
	}
	big := "big can never start here: wants 50 devices"
	code, said := p.mutter("submit", "--name", "big", "--workers", "50", "--", "true")
	never(big, code, 0, said)
	p.muster("submit", "--name", "child", "--after", "big", "--", "true")
	if code, said := p.mutter("run", "--name", "small", "--", "true"); code != 0 {
		t.Errorf("what comes behind it: exit code %d, %q", code, said)
	}
	code, said = p.say("wait", "small", "big")
	never(big, code, exitNotStarted, said)
	code, said = p.say("wait", "child")
	never("child comes after big, which can never start here", code, exitNotStarted, said)
	code, said = p.mutter("logs", "--follow", "big")
	never(big, code, exitNotStarted, said)
	code, said = p.mutter("run", "--name", "more", "--workers", "3", "--", "true")
	never("more can never start here", code, exitNotStarted, said)
	code, said = p.mutter("submit", "--wait", "--name", "sweep", "--array", "2", "--workers", "3", "--", "true")
	never("sweep: 2 waiting, sweep-0 waiting: can never start here", code, exitNotStarted, said)
	code, said = p.say("when", "child")
	never("comes after big", code, 0, said)

	p.muster("submit", "--name", "busy", "--workers", "2", "--", "sleep", "600")
	p.muster("submit", "--name", "two", "--workers", "2", "--", "true")
	p.until("busy", "it runs", func(j view.Job) bool { return j.Phase == "active" })
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		code, said = p.say("wait", "two")
	}()
	tree := func(text string) {
		file := filepath.Join(p.state, "queues.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		p.muster("queues", "set", file)
	}
	tree("limit: 1\nqueues: [{name: a}]\n")
	<-waited
	never("two can never start under its limits", code, exitNotStarted, said)
	tree("limit: 2\nqueues: [{name: a}]\n")
	p.muster("cancel", "busy")
	if code, said := p.say("wait", "two"); code != 0 {
		t.Errorf("once its limit is raised: exit code %d, %q", code, said)
	}
}
