package shadow_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

var strategies = []string{"fifo", "fifo-strict", "las", "tiresias", "srtf", "sjf+history", "srsf+consolidate", "srtf+easy"}

// drawOps draws a history.
func drawOps(t *rapid.T) []op {
	most := 40
	if os.Getenv("MUSTER_LONG") != "" {
		most = 300
	}
	number := rapid.IntRange(0, 1_000_000)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{kind: rapid.IntRange(0, 18).Draw(t, "kind"), a: number.Draw(t, "a"), b: number.Draw(t, "b"), c: number.Draw(t, "c"),
			seconds: rapid.IntRange(0, 200).Draw(t, "seconds")}
	}), most/2, most).Draw(t, "ops")
}

// TestChangesNothing: the same history with and without shadows is journaled the same, and
// leaves the same state, to the byte. A shadow of the strategy that decides never differs,
// and neither does one that is the same under another name, which is asked all the same.
func TestChangesNothing(t *testing.T) {
	var decisions, differing int64
	draws.Cases{Few: 25}.Check(t, func(t *rapid.T) {
		strategy, ops := rapid.SampledFrom(strategies).Draw(t, "strategy"), drawOps(t)
		others := []string{strategy, strategy + "+fixed"} // which all of them have
		for _, s := range rapid.SliceOfNDistinct(rapid.SampledFrom(strategies), 0, 2, rapid.ID[string]).Draw(t, "shadows") {
			if s != strategy {
				others = append(others, s)
			}
		}
		alone, followed := begin(t, strategy, 0), begin(t, strategy, 1024, others...)
		defer alone.stop()
		defer followed.stop()
		for _, o := range ops {
			alone.live(o)
			followed.live(o)
		}
		followed.caughtUp()
		if a, b := alone.batches(), followed.batches(); !slices.Equal(a, b) {
			t.Fatalf("with shadows it is journaled\n%s\nand without\n%s", strings.Join(b, "\n"), strings.Join(a, "\n"))
		}
		if !bytes.Equal(alone.state(), followed.state()) {
			t.Fatal("with shadows the state is another")
		}
		for i, s := range followed.set.List() {
			if s.Skipped != 0 || s.Broken != "" {
				t.Fatalf("%+v", s)
			}
			if i <= 1 && s.Differing != 0 {
				t.Fatalf("%s differs from itself in %d of %d: %+v", strategy, s.Differing, s.Decisions, s.Differences)
			}
			decisions, differing = decisions+s.Decisions, differing+s.Differing
		}
	})
	t.Logf("%d decisions followed, %d of them differ", decisions, differing)
	if differing == 0 {
		t.Error("no shadow ever decided otherwise: nothing is compared")
	}
}

// TestDifference: what differs is told by job and place, and counted.
func TestDifference(t *testing.T) {
	w := begin(t, "fifo-strict", 64, "fifo")
	defer w.stop()
	w.live(op{kind: 0, a: 3, c: 1}) // 4 of 8 devices
	w.live(op{kind: 0, a: 2, c: 1}) // 3
	w.live(op{kind: 0, a: 3, c: 1}) // 4, and the rest is behind it
	w.live(op{kind: 0, a: 0, c: 1}) // 1
	w.caughtUp()
	s := w.set.List()[0]
	if s.Decisions != 3 || s.Differing != 1 || s.Divergence == nil || *s.Divergence != 1./3 || len(s.Differences) != 1 {
		t.Fatalf("%+v", s)
	}
	want := view.Difference{AtUs: epoch, Batch: s.Differences[0].Batch, Active: []string{}, Shadow: []string{"start j3 on node1:3"}}
	if got := s.Differences[0]; !slices.Equal(got.Shadow, want.Shadow) || len(got.Active) != 0 || got.AtUs != want.AtUs {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestBehind: who falls behind skips, says so, and follows exactly again.
func TestBehind(t *testing.T) {
	w := open(t, "fifo", 2, "fifo", "srtf")
	defer w.stop()
	for i := range 20 {
		w.live(op{kind: 0, a: i, b: 7 * i, c: 1, seconds: 1})
	}
	w.follow()
	w.caughtUp()
	skipped := w.set.List()[0].Skipped
	for i := range 40 {
		w.live(op{kind: 8 + i%3, a: i, b: i, c: i, seconds: 60})
		w.caughtUp()
	}
	for _, s := range w.set.List() {
		if skipped < 10 || s.Skipped != skipped || s.Broken != "" || s.Decisions == 0 || s.Name == "fifo" && s.Differing != 0 {
			t.Errorf("%d were skipped at first: %+v", skipped, s)
		}
	}
}

// TestAddRemove: shadows come and go while it runs.
func TestAddRemove(t *testing.T) {
	w := begin(t, "fifo", 64)
	defer w.stop()
	w.live(op{kind: 0, a: 3, c: 1})
	if err := w.set.Add(composition(t, "las"), epoch); err != nil {
		t.Fatal(err)
	}
	if w.set.Add(composition(t, "las"), epoch) == nil {
		t.Error("the same shadow twice")
	}
	w.live(op{kind: 0, a: 3, c: 1})
	w.caughtUp()
	if l := w.set.List(); len(l) != 1 || l[0].Decisions != 1 {
		t.Errorf("%+v", l)
	}
	if err := w.set.Remove("las"); err != nil || len(w.set.List()) != 0 || w.set.Remove("las") == nil {
		t.Errorf("removed: %v, %+v", err, w.set.List())
	}
	w.live(op{kind: 0, a: 3, c: 1})
}

// TestRegrets: where one long job goes before four short ones, the shadow that takes the
// short ones first has the better mean by what can be worked out by hand, and a replay of
// the strategy that decided finds what was recorded.
func TestRegrets(t *testing.T) {
	w := begin(t, "fifo", 64, "srtf+declared", "fifo")
	defer w.stop()
	seconds := []int{100, 1000, 10, 10, 10, 10}
	for i, s := range seconds {
		spec := workload.Job{Name: fmt.Sprint("j", i), Resources: workload.Resources{Gang: 8, Devices: 1, Share: unit.Whole},
			Program: workload.Program{Command: []string{"true"}}, Estimate: unit.Duration(s) * unit.Second}
		if _, err := w.plane.Request(t.Context(), engine.Event{Kind: engine.Submit, Spec: &spec}, ""); err != nil {
			t.Fatal(err)
		}
	}
	for id, s := range seconds {
		w.report(engine.Event{Kind: engine.Started, Job: plan.JobID(id), Attempt: 1})
		w.clock.Add(int64(s) * int64(unit.Second))
		w.report(engine.Event{Kind: engine.Exited, Job: plan.JobID(id), Attempt: 1, Ending: engine.Ending{Kept: unit.Duration(s) * unit.Second}})
	}
	regrets, c, err := w.set.Regrets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mean := func(ends ...float64) (sum float64) {
		for _, e := range ends {
			sum += e
		}
		return sum / float64(len(ends))
	}
	was := mean(100, 1100, 1110, 1120, 1130, 1140)
	if c.Strategy != "fifo" || c.Jobs != 6 || c.Censored != 0 || c.RecordedJCTSec != was || c.ReplayedJCTSec != was || c.Error != 0 {
		t.Errorf("the replay is off by %+v, want %v recorded", c, was)
	}
	// The short ones come in the same instant as the first, and go before it.
	want := mean(10, 20, 30, 40, 140, 1140)
	if r := regrets["srtf+declared"]; r.Jobs != 6 || math.Abs(r.ShadowJCTSec-want) > 1e-6 || math.Abs(r.RegretSec-(was-want)) > 1e-6 || !r.Told {
		t.Errorf("regret %+v, want %v where %v was", r, want, was)
	}
	if r := regrets["fifo"]; r.Jobs != 6 || r.RegretSec != 0 || r.Told {
		t.Errorf("regret of the strategy itself: %+v", r)
	}
}

// TestSwitch: a shadow whose strategy takes over never differs while it decides, and goes on
// as a shadow afterwards.
func TestSwitch(t *testing.T) {
	w := begin(t, "fifo", 4096, "las", "fifo")
	defer w.stop()
	live := func(from int) {
		for i := range 60 {
			w.live(op{kind: (i * 5) % 19, a: from + 7*i, b: 13 * i, c: 3 * i, seconds: 40})
		}
		w.caughtUp()
	}
	differing := func() (n [2]int64) {
		for i, s := range w.set.List() {
			if s.Broken != "" || s.Skipped > 0 {
				t.Fatalf("%+v", s)
			}
			n[i] = s.Differing
		}
		return n
	}
	live(0)
	first := differing()
	if first[1] != 0 {
		t.Errorf("fifo differs from itself %d times", first[1])
	}
	for round, name := range []string{"las", "fifo", "las"} {
		if _, err := w.plane.Switch(t.Context(), plane.Switch{To: composition(t, name)}); err != nil {
			t.Fatal(err)
		}
		w.caughtUp()
		before := differing()
		live(1000 * round)
		after, same := differing(), round%2 // which of the two decides
		if after[same] != before[same] {
			t.Errorf("round %d: %s decides, and differs from itself: %v, then %v", round, name, before, after)
		}
	}
	if all := differing(); all[0] == 0 || all[1] == 0 {
		t.Errorf("they never differ at all: %v", all)
	}
}
