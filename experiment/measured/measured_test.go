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
	"strings"
	"testing"

	"github.com/musterdl/muster/pipeline"
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

// straight is 1F1B.
type straight struct{}

func (straight) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	for r := range ranks {
		s.Line(r).Alternate(s.Chunks(r)[0], ranks-1-r)
	}
	return s, ""
}

// TestSteps: what runs without interleaving and on Megatron-LM is at most 20 % off, and nothing
// is predicted to take longer by more than a hair.
func TestSteps(t *testing.T) {
	seen := 0
	for _, s := range published() {
		if s.chunks > 1 || strings.Contains(s.name, "nodes") {
			continue
		}
		predicted, took, why := s.predict(func(int) pipeline.Ordering { return straight{} })
		if why != "" {
			t.Fatal(why)
		}
		if off := predicted/took - 1; off < -0.2 || off > 0.05 {
			t.Errorf("%s: %.2f s, published %.2f", s.name, predicted, took)
		}
		seen++
	}
	if seen != 10 {
		t.Errorf("%d steps: expected 10", seen)
	}
}

// TestPlans: each mistake in a plan is named with its file and field.
func TestPlans(t *testing.T) {
	const good = `{"model": "OPT-350", "mbs": 2, "gbs": 8, "dp": [2, 2], "layers_per_stage": [[0,1,2,3,4,5,6,7,8,9,10,11,12],[13,14,15,16,17,18,19,20,21,22,23,24,25]],
"tmp_per_stage": [[[[["GH-96", 4, "z"]], 4]], [[[["GH-96", 4, "z"]], 4]]]}`
	read := func(text string) error {
		_, err := readSailor(func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, "p.json")
		return err
	}
	if err := read(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"OPT-350", "OPT-13", "p.json: model is OPT-13"}, {`"gbs": 8`, `"gbs": 7`, "gbs is 7: expected a multiple of mbs 2 times dp 2"},
		{"[13,", "[12,", "layers_per_stage is [12"}, {"24,25]", "24]", "layers_per_stage is"}, {"[2, 2]", "[2, 1]", "dp is [2 1]"},
		{`"z"]], 4]]]}`, `"z"]], 8]]]}`, "tmp_per_stage is 8"}, {"{", "", "reading p.json: "}, {",24,25]]", ",24]]", "expected"},
	} {
		if err := read(strings.Replace(good, c[0], c[1], 1)); err == nil || !strings.Contains(err.Error(), c[2]) || !strings.Contains(err.Error(), "p.json") {
			t.Errorf("%s for %s: %v: expected %q", c[1], c[0], err, c[2])
		}
	}
}
