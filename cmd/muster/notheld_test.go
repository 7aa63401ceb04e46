package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/view"
)

// submits is what submit prints on both streams.
func (p *controlPlane) submits(args ...string) string {
	p.t.Helper()
	cmd := p.command(append([]string{"submit"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("submit %v: %v: %s", args, err, out)
	}
	return string(out)
}

// TestDeadlineIsSeen: a strategy that promises nothing says so when a job with a deadline is submitted, and what becomes of
// the deadline is said of the job while it waits, while it runs and when it has ended.
func TestDeadlineIsSeen(t *testing.T) {
	t.Parallel()
	p := newPlane(t, "--slots", "1", "--strategy", "fifo")
	p.start()
	long := p.want("long")
	if said := p.submits("--name", "long", "--deadline", "1s", "--estimate", "1h", "--", "sh", "-c", "while [ -e "+long+" ]; do sleep 0.1; done"); !strings.Contains(said, "fifo makes no promise about deadlines: muster show long") {
		t.Errorf("submit said %q", said)
	}
	p.submits("--name", "next", "--deadline", "2h", "--estimate", "30m", "--", "true")
	p.submits("--name", "none", "--", "true")
	late := p.until("long", "late", func(j view.Job) bool { return j.Run == "running" && j.Due != nil && j.Due.LateSec > 3000 })
	if !strings.HasPrefix(late.Due.Words, "expected to end 59m") && !strings.HasPrefix(late.Due.Words, "expected to end 1h00m") {
		t.Errorf("%+v", late.Due)
	}
	if j := p.show("next"); j.Due == nil || j.Due.LateSec > -5000 || !strings.HasSuffix(j.Due.Words, "before it if it started now") {
		t.Errorf("%+v", j.Due)
	}
	if out := p.muster("ls"); !strings.Contains(out, "DEADLINE") || !strings.Contains(out, " late ") || !strings.Contains(out, " early ") {
		t.Errorf("ls said\n%s", out)
	}
	p.until("long", "past its deadline", func(j view.Job) bool { return time.Now().After(j.Due.Deadline) })
	p.noMore("long")
	p.muster("wait", "next", "none")
	if out := p.muster("show", "long"); !strings.Contains(out, ", finished ") || !strings.Contains(out, " after it\n") {
		t.Errorf("show said\n%s", out)
	}
	if j := p.show("long"); !j.Due.Missed || p.show("next").Due.Missed || p.show("none").Due != nil {
		t.Errorf("%+v, %+v", j.Due, p.show("next").Due)
	}
}

// TestNotHeld: a limit that is asked for and not held here is said at submission and by status, and where all are held
// nothing is said; a tenant that no queue is for is told where its jobs went.
func TestNotHeld(t *testing.T) {
	t.Parallel()
	queues := filepath.Join(t.TempDir(), "queues.yaml")
	if err := os.WriteFile(queues, []byte("queues: [{name: vision}, {name: speech}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := newPlane(t, "--slots", "2", "--queues", queues)
	p.start()
	status, said := p.muster("status"), p.submits("--name", "asks", "--host-memory", "100MiB", "--tenant", "vison", "--", "true")
	if held := !strings.Contains(status, "limits   "); held == strings.Contains(said, "are no limits here") {
		t.Errorf("status said\n%s\nand submit %q", status, said)
	}
	if want := `no queue is for tenant "vison": what it submits is outside of every queue's share; did you mean "vision"?`; !strings.Contains(said, want) {
		t.Errorf("submit said %q, expected %q", said, want)
	}
	if said := p.submits("--name", "plain", "--tenant", "vision", "--", "true"); said != "plain\n" {
		t.Errorf("submit said %q", said)
	}
}
