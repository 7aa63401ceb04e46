package jahani

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// shared opens a data set, which lies beside the repository.
func shared(path string) (io.ReadCloser, error) {
	return os.Open(filepath.Join("..", "..", "..", "shared", "data", path))
}

// TestMeasure: on average over seeds, what is paid is at most 0.6 of what first come
// first served and earliest deadline first pay on one kind of machine.
func TestMeasure(t *testing.T) {
	mean := map[string]float64{}
	const seeds = 2
	for seed := range uint64(seeds) {
		m, err := Measure(shared, seed)
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("the data set gavel is not here: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		for name := range m {
			mean[name] += m[name] / seeds
		}
		t.Logf("seed %d: %.0f, of it rent %.0f; one kind of machine: mean %.0f, cheapest %.0f", seed, m["cost"], m["rent"], m["fixed-mean"], m["fixed-cheapest"])
	}
	t.Logf("%v", mean)
	if mean["search"] < mean["exact"]-1e-6 || mean["search"] > 1.1*mean["exact"] {
		t.Errorf("the search finds %.3f, the program %.3f: want within a tenth", mean["search"], mean["exact"])
	}
	if got := mean["cost"] / mean["fixed-mean"]; got > 0.6 {
		t.Errorf("%.3f of the mean of one kind of machine, want at most 0.6", got)
	}
}
