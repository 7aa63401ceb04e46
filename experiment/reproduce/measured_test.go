package reproduce

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/experiment/measured"
	"github.com/musterdl/muster/pipeline/shape"
)

// TestExperiences: what muster plan says of how far measured steps were off is so, and stands in docs/plan.md.
func TestExperiences(t *testing.T) {
	open := func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join("../../../shared/data", path)) }
	sailor, err := measured.MeasureSailor(folded(1))(open, 1)
	steps, also := measured.MeasureSteps(folded)(open, 1)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(also, fs.ErrNotExist) {
		t.Skip("no ../shared/data/sailor-measured or mlperf: see docs/data.md")
	}
	if err != nil || also != nil {
		t.Fatal(err, also)
	}
	page, err := os.ReadFile("../../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	every := shape.Experience{Low: math.Inf(1)}
	var logs, allLogs []float64
	fitted := "OPT-350_N1_D1_M4_G32 OPT-350_N16_D16 gpt-22b-selective llama-3-405b-8192"
	for _, of := range []struct {
		device    string
		precision shape.Precision
		from      map[string]float64
		is        func(name string) bool
	}{
		{"GH200-96GB", shape.TF32, sailor, func(name string) bool { return name[0] >= 'A' && name[0] <= 'Z' && !strings.HasSuffix(name, "_memory") }},
		{"H100", shape.Half, steps, func(name string) bool { return strings.HasPrefix(name, "llama") }},
		{"A100-80GB", shape.Half, steps, func(name string) bool {
			return !strings.HasPrefix(name, "llama") && !strings.HasPrefix(name, "mlperf") && !strings.Contains("mean bias within steps", name)
		}},
	} {
		e := shape.Experience{Low: math.Inf(1)}
		logs = nil
		for name, off := range of.from {
			if of.is(name) && !strings.Contains(fitted, name) {
				took := math.Round(100/(1+off/100)) / 100
				e.Low, e.High, e.Steps = min(e.Low, took), max(e.High, took), e.Steps+1
				logs = append(logs, -math.Log1p(off/100))
			}
		}
		allLogs = append(allLogs, logs...)
		every.Low, every.High, every.Steps = min(every.Low, e.Low), max(every.High, e.High), every.Steps+e.Steps
		e.Bias, e.Spread = spread(logs)
		if said, _ := shape.Experienced(of.device, of.precision); said != e {
			t.Errorf("%s: measured steps took %+v of what is predicted, said is %+v", of.device, e, said)
		}
		if row := fmt.Sprintf("| `%s` | %s | %d | %.2f to %.2f |", strings.ToLower(of.device), of.precision, e.Steps, e.Low, e.High); !strings.Contains(string(page), row) {
			t.Errorf("docs/plan.md has no row %s", row)
		}
	}
	every.Bias, every.Spread = spread(allLogs)
	if said := shape.EveryStep(); said != every {
		t.Errorf("all measured steps took %+v of what is predicted, said is %+v", every, said)
	}
}

// spread is the mean and the standard deviation, to a thousandth.
func spread(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean) / float64(max(1, len(x)-1))
	}
	return math.Round(1000*mean) / 1000, math.Round(1000*math.Sqrt(deviation)) / 1000
}
