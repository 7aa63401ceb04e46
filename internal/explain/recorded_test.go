package explain_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/scenetest"
	"github.com/musterdl/muster/plan"
)

// states is how many states TestRecorded looks at, at least.
func states() int {
	if os.Getenv("MUSTER_LONG") != "" {
		return 100_000
	}
	return 1_000
}

// TestRecorded: in random states what is told is what the scheduler recorded a moment
// ago: under random trees, limits, windows, claims, shapes and losses, on full and on
// fragmented clusters, by orders that let others pass and that do not, and by deciders
// for all jobs. A probe of a shape of its own is submitted, so that it is tried itself.
func TestRecorded(t *testing.T) {
	seen := map[plan.ReasonCode]int{}
	looked, probed := 0, 0
	for round := 0; looked < states(); round++ {
		draws.Cases{Round: round}.Check(t, func(r *rapid.T) {
			s := drawScene(t, r)
			for n := range rapid.IntRange(5, 40).Draw(r, "steps") {
				drawStep(r, s, n)
				code, tried := probe(r, s, n)
				if probed++; tried {
					seen[code]++
					looked++
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d states: %v", looked, seen)
	if looked*5 < probed {
		t.Errorf("only %d of %d probes waited and were tried", looked, probed)
	}
	for _, code := range []plan.ReasonCode{plan.Unsatisfiable, plan.QueueLimit, plan.BorrowLimit, plan.UserLimit, plan.KeptBack, plan.Maintenance, plan.Reserved,
		plan.Fragmented, plan.NoRoom, plan.RoundPlan} {
		if seen[code] == 0 {
			t.Errorf("nothing ever waited because of %s: nothing was tested", code)
		}
	}
}

// drawScene makes a site with some queues.
func drawScene(t *testing.T, r *rapid.T) *scenetest.Scene {
	pick := func(name string, list ...string) string { return rapid.SampledFrom(list).Draw(r, name) }
	queues := ""
	for _, q := range []string{"a", "b", "b/c"} {
		queues += "queue " + q
		for _, claim := range []string{"limit", "guarantee", "borrow", "user-limit"} {
			if rapid.IntRange(0, 3).Draw(r, claim+"?") == 0 {
				queues += fmt.Sprintf(" %s=%d", claim, rapid.IntRange(1, 9).Draw(r, claim))
			}
		}
		if rapid.IntRange(0, 5).Draw(r, "keep?") == 0 {
			queues += " guarantee=6 keep=" + pick("keep", "2", "5")
		}
		queues += pick("preempt", "", "", " preempt=1") + "\n"
	}
	return site(t, pick("strategy", "fifo", "fifo+easy", "fifo+conservative", "srtf", "fifo-strict", "tiresias", "afs", "gavel"), pick("queues", "", queues))
}

// drawStep lets something happen.
func drawStep(r *rapid.T, s *scenetest.Scene, n int) {
	if rapid.IntRange(0, 9).Draw(r, "closes") == 0 {
		line := fmt.Sprintf("close node%d from=%dm to=%dm", rapid.IntRange(0, 3).Draw(r, "node"), rapid.IntRange(1, 200).Draw(r, "from"), rapid.IntRange(201, 400).Draw(r, "to"))
		_ = s.Line(line) // it may have a window already
	}
	draw(r, s, n, "1", "1", "2", "3", "4", "0")
}

// probe submits a job and compares what is told of it with what was recorded.
func probe(r *rapid.T, s *scenetest.Scene, n int) (plan.ReasonCode, bool) {
	pick := func(name string, list ...string) string { return rapid.SampledFrom(list).Draw(r, name) }
	name := fmt.Sprint("probe", n)
	line := fmt.Sprintf("submit %s host=%dMiB gang=%s devices=%s tenant=%s user=%s cores=%s%s%s%s", name, n+1, pick("gang", "1", "1", "2", "3"), pick("devices", "1", "2", "3", "4", "5", "0"),
		pick("of", "a", "b", "b/c", "z"), pick("by", "ann", "bob"), pick("cores", "1", "2", "7"), pick("model", "", "", " model=V100"), pick("memory", "", "", " memory=9GiB", " memory=20GiB"),
		pick("estimate", "", " estimate=1h", " estimate=5h")+pick("loses", "", " loses=1"))
	if rapid.IntRange(0, 3).Draw(r, "shares") == 0 {
		line = fmt.Sprintf("submit %s host=%dMiB gang=%s share=%s memory=%s tenant=%s", name, n+1, pick("gang", "1", "3"), pick("share", "0.3", "0.6"), pick("memory", "2GiB", "9GiB"), pick("of", "a", "z"))
	}
	if err := s.Line(line); err != nil {
		r.Fatalf("%s: %v", line, err)
	}
	id, _ := s.Engine.Find(name)
	v := s.Engine.View()
	j := v.Job(id)
	if j.Phase != plan.Waiting {
		return plan.NoReason, false
	}
	code := j.Reason.Code
	if code != plan.New && code != plan.NoReason {
		a := explain.Of(v, nil).Why(id)
		if a.Reason != code {
			r.Fatalf("%s: %s: recorded %s (%s), told %s: %s", s.Strategy, line, code, j.Reason.Words(v), a.Reason, a.Words)
		}
		if a.Code != a.Reason && !owed(a.Reason, a.Code) {
			r.Fatalf("%s: %s: recorded %s (%s), the cause is said to be %s: %s", s.Strategy, line, code, j.Reason.Words(v), a.Code, a.Words)
		}
	}
	if err := s.Line("hold " + name); err != nil {
		r.Fatal(err)
	}
	return code, code != plan.New && code != plan.NoReason
}

// owed reports whether a lack of room may be owed to something: to nodes that take no
// runs, or to those who were let in.
func owed(reason, to plan.ReasonCode) bool {
	return (reason == plan.NoRoom || reason == plan.Fragmented) &&
		slices.Contains([]plan.ReasonCode{plan.NodeLost, plan.NodeSick, plan.ByUser, plan.Maintenance, plan.Outranked, plan.Reclaimed, plan.Behind}, to)
}
