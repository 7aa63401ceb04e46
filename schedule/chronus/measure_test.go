package chronus

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// shared opens a data set, which lies beside the repository.
func shared(path string) (io.ReadCloser, error) {
	return os.Open(filepath.Join("..", "..", "..", "shared", "data", path))
}

// TestExperiment holds the experiment to what was published or measured before, on
// average over seeds; the integer program only where MUSTER_LONG is set.
func TestExperiment(t *testing.T) {
	seeds, players := 2.0, contenders()
	players = players[:len(players)-1] // without the integer program
	if os.Getenv("MUSTER_LONG") == "1" {
		seeds, players = 10, contenders()
	}
	mean := map[string]float64{}
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		f, err := shared(traceFile)
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("the data set chronus is not here: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := sample(f, oneIn, seed)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		m := compare(tasks, seed, players)
		for _, name := range []string{"once", "leases", "tight", "exact"} {
			if m["admitted-miss-"+name] != 0 {
				t.Errorf("seed %d, %s: %.4f of those admitted are late, with exact estimates", seed, name, m["admitted-miss-"+name])
			}
		}
		for name := range m {
			mean[name] += m[name] / seeds
		}
	}
	names := []string{}
	for name := range mean {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Logf("%-28s %8.4f", name, mean[name])
	}
	for _, c := range []struct {
		what       string
		got, limit float64
	}{
		{"late of those admitted, estimates wrong by a fifth", mean["admitted-miss-wrong"], 0.05},
		{"best effort's JCT over EDF's", mean["best-effort-jct-min-leases"] / mean["best-effort-jct-min-edf"], 0.5},
		{"late in all over FIFO's", mean["miss-leases"] / mean["miss-fifo"], 0.15},
		{"admitted without packing anew over with", mean["admitted-once"] / mean["admitted-leases"], 1},
	} {
		if t.Logf("%s: %.3f", c.what, c.got); c.got > c.limit {
			t.Errorf("%s: %.3f, want at most %.2f", c.what, c.got, c.limit)
		}
	}
}
