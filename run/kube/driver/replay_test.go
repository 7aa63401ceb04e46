package driver

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/musterdl/muster/run/kube/apitest"
	"github.com/musterdl/muster/schedule"
)

// busy has more work than fits, of several kinds, over an hour.
func busy(w *apitest.World, minute int) {
	keeps := []func(i int) string{func(int) string { return "on-request,save=1s" }, func(int) string { return "every=5m" }}
	if minute%3 == 0 && minute < 30 {
		i := minute / 3
		w.AddJob(fmt.Sprintf("job-%02d", i), int32(1+i%3), int64(4+4*(i%2)), time.Duration(5+i*7%20)*time.Minute,
			apitest.Annotated("muster.dev/work", fmt.Sprintf("%dm", 5+i*7%20)), apitest.Annotated("muster.dev/checkpoint", keeps[i%2](i)), apitest.Keeping(time.Second))
	}
	switch minute {
	case 4:
		w.AddPod("pod-a", 2, 20*time.Minute)
	case 7:
		w.AddPod("pod-b", 1, 40*time.Minute)
	case 12:
		w.AddJobSet("set", []apitest.Part{{Name: "w", Workers: 2, Devices: 8, Work: 10 * time.Minute}})
	case 20:
		w.AddNodes(5, 8) // one more joins
	case 25:
		w.LoseNode("node-0001")
	}
}

// TestReplay plays one recorded sequence of API events to schedulers that are killed
// between any two of them and built anew from the objects alone: what is decided in
// all is the same, byte for byte.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name  string
		sched func() schedule.Scheduler
	}{
		{"tiresias", composed(t, "tiresias")},
		{"tiresias with claims", composed(t, "tiresias+easy")},
		{"rounds after Gavel", newRounds},
		{"srtf", composed(t, "srtf")},
	} {
		t.Run(c.name, func(t *testing.T) { replay(t, c.sched) })
	}
}

func replay(t *testing.T, sched func() schedule.Scheduler) {
	w := apitest.New(apitest.Options{}) // what restarts call is compared with a recording, where nothing reacts to it
	w.AddNodes(4, 8)
	tape := w.Record()
	s := newStage(t, w, sched)
	lines := []int{} // by event: how many were decided by then
	for minute := range 60 {
		busy(w, minute)
		end := time.Duration(minute+1) * time.Minute
		for w.Since() < end {
			s.one(end)
			for len(lines) < len(tape.Events()) {
				lines = append(lines, len(s.lines))
			}
		}
	}
	if v := w.Violations(); len(v) > 0 {
		t.Fatalf("before any restart: %v", v)
	}
	told := tape.Events()
	events := len(told)
	stride := 1
	if os.Getenv("MUSTER_LONG") == "" {
		stride = 1 + events/40
	}
	t.Logf("%d events, %d commits, decision hash %s", events, len(s.lines), s.hash())
	for at := 0; at < events-1; at += stride {
		for at < events-2 && told[at+1].At.Equal(told[at].At) {
			at++ // what has happened has been told
		}
		again := newStage(t, tape.World(at), sched)
		for again.w.Left() > 0 {
			again.once()
		}
		want := s.lines[lines[at]:]
		if !slices.Equal(again.lines, want) {
			t.Fatalf("restarted after event %d of %d, at %v: %s", at, events, told[at].At.Sub(told[0].At), firstOther(again.lines, want))
		}
	}
}

func firstOther(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("commit %d of those that follow is\n%s\nnot\n%s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d commits follow, not %d\n%v\n%v", len(got), len(want), got[min(len(got), len(want)):], want[min(len(got), len(want)):])
}
