package reproduce

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

func comparison(trace string, strategies ...string) Comparison {
	c := Comparison{Setup: Defaults(), Strategies: strategies, Seeds: 4}
	c.Setup.Trace = trace
	return c
}

func TestComparePairsBySeed(t *testing.T) {
	c := comparison("gen:rw-a", "fifo", "tiresias")
	got, err := Compare(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 2 || got.Over != "seeds" || len(got.Seeds) != 4 {
		t.Fatalf("rows %d, over %s, seeds %v", len(got.Rows), got.Over, got.Seeds)
	}
	sum := 0.0
	for k, r := range got.Rows[1].BySeed {
		s := c.Setup
		s.Strategy, s.Seed = "tiresias", uint64(k+1)
		alone, err := Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		if alone.Result.DecisionHash != r.DecisionHash {
			t.Errorf("seed %d: the comparison decided otherwise than the simulation alone", k+1)
		}
		sum += r.AvgJCTSec
	}
	row := got.Rows[1]
	if mean := sum / 4; row.AvgJCTSec != mean {
		t.Errorf("mean %v, expected %v", row.AvgJCTSec, mean)
	}
	if want := row.AvgJCTSec / got.Rows[0].AvgJCTSec; !near(row.Ratio.Point, want) || row.Ratio.N != 4 || !row.Ratio.Known() {
		t.Errorf("ratio %+v, expected %v over 4", row.Ratio, want)
	}
	if row.Jobs != 4*480 || row.Finished != 4*480 {
		t.Errorf("%d jobs, %d finished: expected the sum over seeds", row.Jobs, row.Finished)
	}
	if first := got.Rows[0].Ratio; first.Point != 1 || first.Low != 1 || first.High != 1 {
		t.Errorf("the first strategy beside itself: %+v", first)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestCompareDoesNotDependOnWorkers(t *testing.T) {
	var texts []string
	for _, workers := range []int{1, 3} {
		c := comparison("gen:rw-a-prime", "fifo", "fifo-strict", "tiresias")
		c.Workers = workers
		got, err := Compare(c)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Error("one worker and three give different comparisons")
	}
}

// write puts generated jobs in a file, so that they are a trace.
func write(t *testing.T, ref string, o trace.Options) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "jobs.csv")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := trace.Open(ref, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Copy(trace.NewWriter(f, trace.CSV), r); err != nil {
		t.Fatal(err)
	}
	return "muster:" + name
}

func TestCompareTraceByWeek(t *testing.T) {
	ref := write(t, "gen:rw-a?days=31", trace.Options{Seed: 3, Devices: 60})
	got, err := Compare(comparison(ref, "fifo", "tiresias"))
	if err != nil {
		t.Fatal(err)
	}
	row := got.Rows[1]
	if got.Over != "weeks" || len(row.BySeed) != 1 {
		t.Errorf("over %s, %d runs", got.Over, len(row.BySeed))
	}
	// 31 days without 6 fall into four weeks.
	if row.Ratio.N != 4 || !row.Ratio.Known() || row.Ratio.Low > row.Ratio.Point || row.Ratio.High < row.Ratio.Point {
		t.Errorf("ratio %+v: expected an interval over 4 weeks", row.Ratio)
	}
	if row.AvgJCT.N != 4 {
		t.Errorf("avg JCT %+v: expected an interval over 4 weeks", row.AvgJCT)
	}
	if !strings.Contains(got.Method(), "4 weeks") {
		t.Errorf("method: %s", got.Method())
	}
}

func TestCompareReportsCensored(t *testing.T) {
	// A job wider than the cluster never starts: it is counted and not averaged.
	name := filepath.Join(t.TempDir(), "jobs.csv")
	text := "name,submit_s,duration_s,gang\nsmall,0,100,1\nwide,10,100,5\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := comparison("muster:"+name, "fifo", "tiresias")
	c.Setup.Cluster, c.Setup.Prices = "gpus:1x4", simulated.Prices{}
	got, err := Compare(c)
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Rows[0]; r.Censored != 1 || r.Finished != 1 || r.AvgJCTSec != 100 {
		t.Errorf("censored %d, finished %d, average %v", r.Censored, r.Finished, r.AvgJCTSec)
	}
	var b strings.Builder
	if err := report.WriteComparison(&b, got.ReportRows(), report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "censored") {
		t.Errorf("the table hides a censored job:\n%s", b.String())
	}
}

// TestCompareTellsOfLargeGangs: by a trace in which how long they wait is plain, and over seeds of
// which one has none.
func TestCompareTellsOfLargeGangs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "jobs.csv")
	text := "name,submit_s,duration_s,gang\nsmall,0,100,1\nlarge,0,100,16\nlarger,0,50,16\nlast,0,400,1\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := comparison("muster:"+name, "fifo-strict")
	c.Setup.Cluster, c.Setup.Prices = "gpus:1x16", simulated.Prices{}
	got, err := Compare(c)
	if err != nil {
		t.Fatal(err)
	}
	// They wait 100 and 200 s; the second takes 250 s in all, five times as long as alone.
	if r := got.Rows[0]; r.LargeGangs != 2 || r.AvgGangWaitSec != 150 || r.LongestGangWaitSec != 200 || r.P99Slowdown != 5 {
		t.Errorf("%d gangs waited %v s, at most %v, and the p99 slowdown is %v", r.LargeGangs, r.AvgGangWaitSec, r.LongestGangWaitSec, r.P99Slowdown)
	}
	var b strings.Builder
	if err := report.WriteComparison(&b, got.ReportRows(), report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"p99 slowdown", "gangs' wait", "their longest", "preempted"} {
		if !strings.Contains(b.String(), column) {
			t.Errorf("the table has no %s:\n%s", column, b.String())
		}
	}
	seeds := average([]report.Result{
		{Gangs: report.Gangs{LargeGangs: 3, AvgGangWaitSec: 10, LongestGangWaitSec: 25}}, {},
		{Gangs: report.Gangs{LargeGangs: 1, AvgGangWaitSec: 50, LongestGangWaitSec: 50}}})
	if seeds.LargeGangs != 4 || seeds.AvgGangWaitSec != 20 || seeds.LongestGangWaitSec != 50 {
		t.Errorf("over seeds %d gangs waited %v s, at most %v", seeds.LargeGangs, seeds.AvgGangWaitSec, seeds.LongestGangWaitSec)
	}
}

func TestCompareWithoutAddsRows(t *testing.T) {
	c := comparison("gen:rw-a-prime", "tiresias", "fifo")
	c.Setup.Without = []string{"schedule", "allocate"}
	c.Seeds = 1
	got, err := Compare(c)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range got.Rows {
		names = append(names, r.Strategy)
	}
	want := "tiresias, tiresias without schedule, tiresias without allocate, fifo, fifo without schedule, fifo without allocate"
	if strings.Join(names, ", ") != want {
		t.Errorf("rows %q, expected %q", strings.Join(names, ", "), want)
	}
	if got.Rows[1].BySeed[0].DecisionHash != got.Rows[4].BySeed[0].DecisionHash {
		t.Error("tiresias without step 3 is fifo, but decides otherwise")
	}
	if got.Rows[1].Ratio.Known() {
		t.Error("one seed gives no interval")
	}
}

func TestComparePage(t *testing.T) {
	c := comparison("gen:rw-a-prime", "fifo", "tiresias")
	c.Pictures, c.Seeds = true, 2
	got, err := Compare(c)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := report.HTML(&b, got.Page("today")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 strategies on gen:rw-a-prime", "today", "pictures are of seed 1", "<svg"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(b.String(), "seed 0") {
		t.Error("the page names a seed that nobody chose")
	}
}

func TestCompareMistakes(t *testing.T) {
	for _, m := range []struct {
		change func(*Comparison)
		say    string
	}{
		{func(c *Comparison) { c.Strategies = nil }, "nothing to compare"},
		{func(c *Comparison) { c.Strategies = []string{"fifo", "nobody"} }, "nobody"},
		{func(c *Comparison) { c.Seeds = 0 }, "at least 1"},
		{func(c *Comparison) { c.Setup.Trace = "gen:rw-a?jobs=9&seed=3" }, "fixes its seed"},
		{func(c *Comparison) { c.Setup.Trace = "muster:no-such-file" }, "no-such-file"},
		{func(c *Comparison) { c.Setup.Without = []string{"sleep"} }, "sleep"},
	} {
		c := comparison("gen:rw-a-prime", "fifo", "tiresias")
		m.change(&c)
		if _, err := Compare(c); err == nil || !strings.Contains(err.Error(), m.say) {
			t.Errorf("expected an error about %q, got %v", m.say, err)
		}
	}
}

func TestCompareProgress(t *testing.T) {
	c := comparison("gen:rw-a?jobs=3000", "fifo", "tiresias")
	c.Seeds = 2
	var last Progress
	c.Progress = func(p Progress) { last = p }
	if _, err := Compare(c); err != nil {
		t.Fatal(err)
	}
	if last.Done != 4 || last.Runs != 4 || last.JobsEnded < 8000 {
		t.Errorf("the last progress was %+v", last)
	}
}
