package gavel

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/solve"
)

// TestMain keeps the compiled solver among the user's caches.
func TestMain(m *testing.M) {
	if dir, err := os.UserCacheDir(); err == nil {
		solve.Cache(filepath.Join(dir, "muster", "solve"))
	}
	os.Exit(m.Run())
}

func data(t testing.TB) func(string) (io.ReadCloser, error) {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "data")
	if _, err := os.Stat(filepath.Join(root, "gavel")); err != nil {
		t.Skipf("the data set gavel is not here: %v", err)
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join(root, path)) }
}

func bundledTrace(t testing.TB, open func(string) (io.ReadCloser, error), name string) []*trial {
	t.Helper()
	rates, err := tables(open)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := bundled(open, rates, name)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	t.Logf("%s: %.3f", what, got)
	if got < low || got > high {
		t.Errorf("%s: %.4g, want %.4g to %.4g", what, got, low, high)
	}
}

// TestTrace: what the published simulator gives on its own traces (8 V100, 16 P100, 24
// K80; commit c4fa400): mean JCT 5.55 and 4.06 h, 4.17 h under finish-time fairness,
// and a makespan of 17.98 h.
func TestTrace(t *testing.T) {
	open := data(t)
	run := func(policy, trace string) (jct, makespan float64) {
		jobs := bundledTrace(t, open, trace)
		if err := (&simulation{policy: policy, room: []int{8, 16, 24}, roundSec: 360}).run(jobs); err != nil {
			t.Fatal(err)
		}
		return hours(jobs)
	}
	agnostic, _ := run(Agnostic, "max_min_fairness.trace")
	aware, _ := run(MaxMin, "max_min_fairness.trace")
	_, makespan := run(Makespan, "minimize_makespan.trace")
	within(t, "mean JCT in h, agnostic", agnostic, 5.55*.9, 5.55*1.1)
	within(t, "mean JCT in h, aware", aware, 4.06*.9, 4.06*1.1)
	within(t, "their ratio", aware/agnostic, .73-.06, .73+.06)
	within(t, "makespan in h", makespan, 17.98*.97, 17.98*1.03)
	if os.Getenv("MUSTER_LONG") == "1" {
		fair, _ := run(FinishTimeFairest, "max_min_fairness.trace")
		within(t, "mean JCT in h, finish-time fairness", fair, 4.17*.9, 4.17*1.1)
	}
}

// TestMeasure: at load 0.9 on 36:36:36 the aware policy's mean JCT is at most 0.85 of
// the agnostic one's.
func TestMeasure(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("long; set MUSTER_LONG=1")
	}
	figures, err := Measure(data(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(figures)
	within(t, "mean JCT at load 0.9, aware over agnostic", figures["load_jct_h_aware"]/figures["load_jct_h_agnostic"], 0, .85)
}
