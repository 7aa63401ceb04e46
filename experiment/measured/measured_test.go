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

// data opens what is published beside the repository.
func data(path string) (io.ReadCloser, error) {
	return os.Open(filepath.Join("../../../shared/data", path))
}

// measureSailor is how far all plans are off; without the data it skips.
func measureSailor(t *testing.T) map[string]float64 {
	t.Helper()
	got, err := MeasureSailor(straight{})(data, 1)
	orSkip(t, err)
	return got
}

// orSkip skips where the data is not there, and fails for any other error.
func orSkip(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/data/sailor-measured: the plans are not in the repository, see docs/data.md")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSailor(t *testing.T) {
	got := measureSailor(t)
	if got["all_n"] != 26 || got["others_n"] != 24 || got["memory_n"] != 25 {
		t.Errorf("%g plans, %g of them not fitted, %g in their memory: expected 26, 24 and 25", got["all_n"], got["others_n"], got["memory_n"])
	}
	for name, most := range map[string]float64{"others": 5.35, "memory": 10, "all_bias": 5} {
		if math.Abs(got[name]) > most {
			t.Errorf("%s is off by %.2f %% in the mean: expected at most %g", name, got[name], most)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		t.Logf("%-24s %.2f", name, got[name])
	}
}

// TestConstants: each constant is that of the step, or of the memory, that it was fitted on. That of H100 is of a step
// of many stages a rank, and its claim has a band of its own.
func TestConstants(t *testing.T) {
	for _, s := range published() {
		if s.name != "gpt-22b-selective" {
			continue
		}
		predicted, took, why := s.predict(func(int) pipeline.Ordering { return straight{} })
		if why != "" {
			t.Fatal(why)
		}
		if off := 100 * (predicted/took - 1); math.Abs(off) > .5 {
			t.Errorf("%s is off by %.2f %%: the constant of %s is not that which fits it", s.name, off, s.device)
		}
	}
	got := measureSailor(t)
	for _, name := range append(sailorFitted, sailorFilled+"_memory") {
		if math.Abs(got[name]) > .5 {
			t.Errorf("%s is off by %.2f %%: the constants are not those that fit it", name, got[name])
		}
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

// TestSteps: what runs without interleaving and on Megatron-LM is at most a tenth off, and neither too fast nor too slow
// in the mean.
func TestSteps(t *testing.T) {
	seen, bias := 0., 0.
	for _, s := range published() {
		if s.chunks > 1 || strings.Contains(s.name, "nodes") {
			continue
		}
		predicted, took, why := s.predict(func(int) pipeline.Ordering { return straight{} })
		if why != "" {
			t.Fatal(why)
		}
		off := predicted/took - 1
		if math.Abs(off) > .1 {
			t.Errorf("%s: %.2f s, published %.2f", s.name, predicted, took)
		}
		seen++
		bias += (off - bias) / seen
	}
	if seen != 10 || math.Abs(bias) > .05 {
		t.Errorf("%g steps, off by %.3f in the mean: expected 10, by at most .05", seen, bias)
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
