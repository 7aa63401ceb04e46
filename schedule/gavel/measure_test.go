package gavel

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterdl/muster/solve"
)

func data(t testing.TB) func(string) (io.ReadCloser, error) {
	root := filepath.Join("..", "..", "..", "shared", "data")
	if _, err := os.Stat(filepath.Join(root, "gavel")); err != nil {
		t.Skipf("the data set gavel is not here: %v", err)
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join(root, path)) }
}

func TestMain(m *testing.M) {
	if dir, err := os.UserCacheDir(); err == nil {
		if err := solve.Cache(filepath.Join(dir, "muster", "solve")); err != nil {
			fmt.Fprintln(os.Stderr, "without a cache:", err)
		}
	}
	os.Exit(m.Run())
}

func TestLoad(t *testing.T) {
	open := data(t)
	tab, err := tables(open)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(1) {
		for _, policy := range []string{Agnostic, MaxMin} {
			room := []int{36, 36, 36}
			jobs := continuous(tab, 1000, .9, room, seed)
			t0 := time.Now()
			s := &simulation{policy: policy, room: room, roundSec: 360, window: jobs[400:700]}
			if err := s.run(jobs); err != nil {
				t.Fatal(err)
			}
			jct, makespan := hours(s.window)
			t.Logf("%s: JCT %.3f makespan %.3f (%s) active %d gap %g", policy, jct, makespan, time.Since(t0), len(s.active), jobs[999].arrival/1000)
		}
	}
}

func TestTrace(t *testing.T) {
	open := data(t)
	tab, err := tables(open)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ trace, policy string }{
		{"max_min_fairness.trace", Agnostic}, {"max_min_fairness.trace", MaxMin}, {"max_min_fairness.trace", FinishTimeFairest},
		{"minimize_makespan.trace", Agnostic}, {"minimize_makespan.trace", Makespan}} {
		jobs, err := bundled(open, tab, c.trace)
		if err != nil {
			t.Fatal(err)
		}
		t0 := time.Now()
		s := &simulation{policy: c.policy, room: []int{8, 16, 24}, roundSec: 360}
		if err := s.run(jobs); err != nil {
			t.Fatal(err)
		}
		jct, makespan := hours(jobs)
		t.Logf("%s %s: JCT %.3f makespan %.3f (%s)", c.trace, c.policy, jct, makespan, time.Since(t0))
	}
}
