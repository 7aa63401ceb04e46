package measured

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSailor(t *testing.T) {
	got, err := MeasureSailor(func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join("../../../shared/data", path)) }, 1)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/data/sailor-measured: the plans are not in the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got["all_n"] != 26 || got["others_n"] != 24 {
		t.Errorf("%g plans, %g of them not fitted: expected 26 and 24", got["all_n"], got["others_n"])
	}
	for _, name := range sailorFitted {
		if math.Abs(got[name]) > 0.5 {
			t.Errorf("%s is off by %.2f %%: the constants are not those that fit it", name, got[name])
		}
	}
	if got["others"] > 5.35 {
		t.Errorf("the others are off by %.2f %% in the mean: expected at most 5.35", got["others"])
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		t.Logf("%-24s %.2f", name, got[name])
	}
}
