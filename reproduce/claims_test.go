package reproduce

import (
	"os"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/report"
)

func avgJCT(r *report.Result) float64 { return r.AvgJCTSec }

func figures(runs []report.Result, of func(*report.Result) float64) []float64 {
	v := make([]float64, len(runs))
	for i := range runs {
		v[i] = of(&runs[i])
	}
	return v
}

// TestTiresiasClaims runs the quick claim; with MUSTER_LONG=1 it runs 200 seeds.
func TestTiresiasClaims(t *testing.T) {
	claims, err := Claims("tiresias", "")
	if err != nil {
		t.Fatal(err)
	}
	r := ClaimRun{Quick: true}
	if os.Getenv("MUSTER_LONG") == "1" {
		r = ClaimRun{Seeds: 200}
	}
	list, err := r.Run(claims[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		f := &list[i]
		t.Logf("%-46s %s, %s over %d seeds: %s", f.Metric, f.Ours(), f.Band(), f.Seeds, f.Verdict)
		if f.Verdict == catalogue.Missed {
			t.Errorf("%s is %s: the band is %s", f.Metric, f.Ours(), f.Band())
		}
	}
}
