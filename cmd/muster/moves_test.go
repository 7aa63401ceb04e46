package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/view"
)

// TestMovedForAnother: two jobs hold half a slot each when their neighbours have ended, and a third wants a whole one:
// the later of the two saves, and goes on beside the other from where it was.
func TestMovedForAnother(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("twenty seconds; set MUSTER_LONG=1")
	}
	t.Parallel()
	p := planeOf(t, "order: fifo\nplace: best-fit\nmoves: small-moves\n", "--slots", "2", "--slot-cpu", "200m", "--summary-every", "100ms", "--checkpoint-wait", "20s", "--grace", "10s")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	half := func(name string, command ...string) {
		p.muster(slices.Concat([]string{"submit", "--name", name, "--share", "500m", "--estimate", "1h", "--checkpoint-on-request", "--env", "MUSTER_TEST_AS_MUSTER=1", "--"}, command)...)
		p.until(name, "on its way", func(j view.Job) bool { return j.Run == "running" })
	}
	train := slices.Concat(keepProgress, []string{exe, "trainer", "--steps", "100000", "--checkpoint-every", "0", "--dim", "16", "--seq", "16", "--step-delay", "50ms"})
	for _, n := range []string{"1", "2"} {
		half("stays-"+n, train...)
		half("leaves-"+n, "sleep", "1000")
	}
	p.until("stays-2", "making steps", func(j view.Job) bool { return j.Progress > 0 })
	p.muster("cancel", "leaves-1", "leaves-2")
	for _, n := range []string{"1", "2"} {
		p.until("leaves-"+n, "cancelled", func(j view.Job) bool { return j.Phase == "cancelled" })
	}
	p.muster("submit", "--name", "whole", "--estimate", "1h", "--", "sleep", "0.2")
	p.muster("wait", "whole")

	moved := p.until("stays-2", "on its way again", func(j view.Job) bool { return j.Attempt == 2 && j.Run == "running" })
	if moved.Preemptions != 1 || moved.Restarts != 0 || p.show("stays-1").Attempt != 1 {
		t.Errorf("it was displaced %d times and failed %d times, the other is in attempt %d", moved.Preemptions, moved.Restarts, p.show("stays-1").Attempt)
	}
	want := []string{"start 1: there was room", "stop 1: moved to make room for whole", "start 2: moved to make room for whole"}
	if got := p.decisions("stays-2"); !slices.Equal(got, want) {
		t.Errorf("of it was decided %q, expected %q", got, want)
	}
	p.until("stays-2", "resumed", func(j view.Job) bool { return strings.Contains(p.muster("logs", "stays-2"), "resumed from step") })
	p.muster("cancel", "stays-1", "stays-2")
}
