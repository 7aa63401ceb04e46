package reproduce

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/schedule/calendar"
)

// BenchmarkMuster runs what muster bench runs; memory is the whole process's here,
// so the command's figures are the ones to quote.
func BenchmarkMuster(b *testing.B) {
	for _, m := range Benchmarks() {
		b.Run(m.Name, func(b *testing.B) {
			for b.Loop() {
				got, err := m.Measure()
				if err != nil {
					b.Fatal(err)
				}
				if got.Missing != "" {
					b.Skip(got.Missing)
				}
				if m.Group == "commit" {
					b.ReportMetric(got.P50CommitSec*1e9, "p50-ns/commit")
					b.ReportMetric(got.P99CommitSec*1e9, "p99-ns/commit")
					b.ReportMetric(got.AllocsPerCommit, "allocs/commit")
				} else {
					b.ReportMetric(float64(got.Jobs)/got.WallSec, "jobs/s")
				}
			}
		})
	}
}

func TestCommitCostDoesNotGrowWithTheCluster(t *testing.T) {
	var costs []CommitCost
	for _, devices := range []int{200, 4000} {
		c, err := MeasureCommits("fifo", CommitWork{Devices: devices, Load: 0.9, Measured: 4000, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if c.Commits < 3000 || c.Jobs != 4000 {
			t.Errorf("%d devices: %d commits for %d jobs: nearly every job should have started by itself", devices, c.Commits, c.Jobs)
		}
		costs = append(costs, c)
	}
	// Time is not compared here: it depends on who else uses the machine. A commit makes
	// itself and now and then a longer table, and what is tried in vain makes nothing.
	if costs[0].Allocs > 2 {
		t.Errorf("%.2f allocations per commit", costs[0].Allocs)
	}
	if costs[1].Allocs > costs[0].Allocs+0.5 {
		t.Errorf("allocations per commit grew from %.2f to %.2f", costs[0].Allocs, costs[1].Allocs)
	}
}

func TestMeasureCommitsPreempts(t *testing.T) {
	c, err := MeasureCommits("tiresias", CommitWork{Devices: 200, Load: 1.2, Measured: 4000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c.Preemptions == 0 || c.LongestQueueJobs == 0 {
		t.Errorf("an overloaded cluster under tiresias: %d preemptions, longest queue %d", c.Preemptions, c.LongestQueueJobs)
	}
	if c.Allocs > 6 {
		t.Errorf("%.2f allocations per commit that displaces", c.Allocs)
	}
}

func TestBenchmarksAreNamedOnceAndSayWhatTheyMiss(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Benchmarks() {
		if seen[b.Name] {
			t.Errorf("%s is listed twice", b.Name)
		}
		seen[b.Name] = true
	}
	t.Setenv("MUSTER_DATA", t.TempDir())
	for _, b := range Benchmarks() {
		if b.Name != "venus/fifo" {
			continue
		}
		m, err := b.Measure()
		if err != nil || !strings.Contains(m.Missing, "MUSTER_DATA") {
			t.Errorf("without data: %+v, %v", m, err)
		}
	}
}

func TestJudgeCommits(t *testing.T) {
	list := []Measurement{
		{Name: "venus/fifo"},
		{Name: "commit/a/1000", P99CommitSec: 1e-6, AllocsPerCommit: 3, Devices: 1000}, {Name: "commit/a/100000", P99CommitSec: 2.9e-6, AllocsPerCommit: 3.2},
		{Name: "commit/b/1000", P99CommitSec: 1e-6, AllocsPerCommit: 3, Devices: 1000}, {Name: "commit/b/100000", P99CommitSec: 3.1e-6, AllocsPerCommit: 3},
		{Name: "commit/c/1000", P99CommitSec: 1e-6, AllocsPerCommit: 3, Devices: 1000}, {Name: "commit/c/100000", P99CommitSec: 1e-6, AllocsPerCommit: 4},
	}
	JudgeCommits(list)
	for i, missed := range []bool{false, false, false, false, true, false, true} {
		if list[i].Missed != missed {
			t.Errorf("%s: missed is %v", list[i].Name, list[i].Missed)
		}
	}
	if list[0].Target != "" || list[2].Target == "" {
		t.Error("only the larger size of each strategy has a target")
	}
}

// TestDecisionTimes: every order and every joint decider can be timed, at a small size;
// how long they take depends on who else uses the machine, and is not compared.
func TestDecisionTimes(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("times every strategy; set MUSTER_LONG=1")
	}
	for _, name := range TimedStrategies() {
		began := time.Now()
		m, err := MeasureDecisions(name, DecisionWork{Devices: 80, Active: 40, Measured: 30, Budget: 100 * time.Millisecond, MostP99: time.Hour, Seed: 1})
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case m.Steps < 3 || m.Running == 0 || m.P99Sec < m.P50Sec || m.P50Sec <= 0 || m.FirstSec <= 0:
			t.Errorf("%s: %+v", name, m)
		case m.Missed || m.Target != "p99 1h0m0s":
			t.Errorf("%s: %q is taken for missed", name, m.Target)
		case m.Part == "order" && m.Answers > 0:
			t.Errorf("%s asks %d questions", name, m.Answers)
		}
		t.Logf("%s in %s: p50 %.0f us, p99 %.0f us, %d answers of p50 %.0f us", name, time.Since(began), 1e6*m.P50Sec, 1e6*m.P99Sec, m.Answers, 1e6*m.P50AnswerSec)
	}
}

// What README and docs tell users to run is among what is timed, where it is of several
// strategies of which one ranks, reserves, sizes, places or admits.
func TestCompositionsOfTheDocsAreTimed(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	mentioned := regexp.MustCompile(`--strateg(?:y|ies) ([a-z0-9+,-]+)`)
	found := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mentioned.FindAllStringSubmatch(string(text), -1) {
			for _, name := range strings.Split(m[1], ",") {
				if !strings.Contains(name, "+") || slices.ContainsFunc(strings.Split(name, "+"), ofPipelines) {
					continue
				}
				if found++; !slices.Contains(TimedStrategies(), name) {
					t.Errorf("%s has users run %s, which muster bench --strategies does not time", page, name)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d compositions were found in the documentation", found)
	}
	for _, name := range catalogue.Names(calendar.ReservePart) {
		if name != calendar.ReservePart.Null && !slices.Contains(TimedStrategies(), "fifo+"+name) {
			t.Errorf("the reservation %s is not timed", name)
		}
	}
}

// ofPipelines are strategies that no decision of the engine asks.
func ofPipelines(name string) bool {
	e, ok := catalogue.Find(name)
	return ok && e.Part.Step == "pipeline"
}
