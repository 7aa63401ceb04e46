package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/view"
)

// TestMaintain: a window to come keeps nobody from starting who saves; when it begins that job is stopped, and behind it it
// goes on. Of one that would lose its work it is said that it waits for that.
func TestMaintain(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("a minute and a half; set MUSTER_LONG=1")
	}
	t.Parallel()
	p := newPlane(t, "--slots", "2")
	p.start()
	wanted := p.want("saves")
	script := "trap 'exit 143' TERM; while [ -e " + wanted + " ]; do sleep 0.1; done"
	p.submits("--name", "loses", "--", "true")
	p.muster("wait", "loses")
	if out := p.muster("maintain", "here", "--from", "+75s", "--for", "5s", "--dry-run"); out != "no job is in the way\nnothing was changed\n" {
		t.Errorf("a dry run said %q", out)
	}
	closed := time.Now().Add(75 * time.Second)
	p.muster("maintain", "here", "--from", "+75s", "--for", "1h")
	p.submits("--name", "saves", "--checkpoint-on-request", "--", "sh", "-c", script)
	p.submits("--name", "waits", "--", "true")
	running := p.until("saves", "running", func(j view.Job) bool { return j.Run == "running" })
	if !strings.Contains(running.Reason, "here is closed for maintenance then") {
		t.Errorf("its owner is told %q", running.Reason)
	}
	if out := p.muster("why", "waits"); !strings.Contains(out, "maintenance") || !strings.Contains(out, "saves its work or may be tried again") {
		t.Errorf("why said\n%s", out)
	}
	time.Sleep(time.Until(closed))
	p.until("saves", "stopped", func(j view.Job) bool { return j.Run != "running" })
	p.muster("maintain", "here", "--cancel")
	p.until("saves", "running again", func(j view.Job) bool { return j.Run == "running" && j.Attempt == 2 })
	p.muster("wait", "waits")
	p.noMore("saves")
}
