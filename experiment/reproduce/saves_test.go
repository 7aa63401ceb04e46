package reproduce

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
)

// savesPlay is what a play of TestSaves may say besides its strategy.
type savesPlay struct {
	On      string
	Restart unit.Duration
	Without string
	Never   float64
	Every   unit.Duration
}

// TestSaves plays testdata/saves.txt: what jobs keep that are stopped, by what their trace says. The blocks
// queues and jobs hold such files for the plays below; go test -run Saves -args -rewrite writes anew what is expected.
func TestSaves(t *testing.T) {
	jobs, queues := filepath.Join(t.TempDir(), "jobs.csv"), filepath.Join(t.TempDir(), "queues.yaml")
	datadriven.RunTest(t, "testdata/saves.txt", func(t *testing.T, d *datadriven.TestData) string {
		if file := map[string]string{"jobs": jobs, "queues": queues}[d.Cmd]; file != "" {
			if err := os.WriteFile(file, []byte(d.Input), 0o600); err != nil {
				t.Fatal(err)
			}
			return ""
		}
		var set savesPlay
		words := strings.Fields(d.FullCmd())
		if err := spec.Decode("play", []byte("{"+strings.ReplaceAll(strings.Join(words[2:], ", "), "=", ": ")+"}"), &set); err != nil {
			d.Fatalf(t, "%v", err)
		}
		s := Defaults()
		s.Trace, s.Cluster, s.Strategy, s.Queues = "muster:"+jobs, set.On, words[1], queues
		s.Prices, s.Check = simulated.Prices{Restart: set.Restart}, true
		s.Saving.Never, s.Saving.Every = set.Never, set.Every
		if set.Without != "" {
			s.Without = []string{set.Without}
		}
		o, err := Simulate(s)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		r, b := &o.Result, strings.Builder{}
		for _, j := range o.Collector.View().Jobs {
			fmt.Fprintf(&b, "%s %s after %s, having run %s, %d times preempted\n", j.Name, j.Outcome, j.JCT(), j.Run, j.Preemptions)
		}
		fmt.Fprintf(&b, "device seconds: useful %.6g, overhead %.6g, lost %.6g\n", r.UsefulDeviceSec, r.OverheadDeviceSec, r.LostDeviceSec)
		for _, note := range r.Notes {
			if strings.Contains(note, "save") {
				fmt.Fprintln(&b, note)
			}
		}
		return b.String()
	})
}

// TestNeverSavesIsDrawnAlike: which jobs never save depends on the seed, and not on who decides.
func TestNeverSavesIsDrawnAlike(t *testing.T) {
	never := func(strategy string, seed uint64) (jobs []plan.JobID) {
		t.Helper()
		s := Defaults()
		s.Trace, s.Strategy, s.Seed, s.NoBounds = "gen:rw-a-prime", strategy, seed, true
		s.Saving.Never = 1. / 3
		var last plan.View
		s.Commit = func(v plan.View, _ *plan.Commit) { last = v }
		o, err := Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		for id := range plan.JobID(last.Jobs()) {
			if c := last.Job(id).Checkpoint; !c.OnRequest && c.Every == 0 {
				jobs = append(jobs, id)
			}
		}
		if part := float64(len(jobs)) / float64(o.Result.Jobs); part < .2 || part > .47 {
			t.Errorf("%s: %.2f of the jobs never save, expected a third", strategy, part)
		}
		return jobs
	}
	first := never("fifo", 1)
	for _, strategy := range []string{"las", "tiresias", "srsf+oracle", "muster", "fifo+easy"} {
		if other := never(strategy, 1); !slices.Equal(first, other) {
			t.Errorf("under fifo %v never save, under %s %v", first, strategy, other)
		}
	}
	if other := never("fifo", 2); slices.Equal(first, other) {
		t.Error("another seed draws the same")
	}
}

// TestNoPartOfJobs: what is no part of the jobs is refused.
func TestNoPartOfJobs(t *testing.T) {
	s := Defaults()
	s.Saving.Never = 1.5
	if _, err := Simulate(s); err == nil || !strings.Contains(err.Error(), "from 0 to 1") {
		t.Errorf("%v", err)
	}
}
