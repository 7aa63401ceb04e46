package reproduce

import (
	"os"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/run/report"
)

func avgJCT(r *report.Result) float64 { return r.AvgJCTSec }

func figures(runs []report.Result, of func(*report.Result) float64) []float64 {
	v := make([]float64, len(runs))
	for i := range runs {
		v[i] = of(&runs[i])
	}
	return v
}

// TestTiresiasClaims runs all 200 seeds of the claim, where only what docs/misses.txt lists may
// miss. TestClaimsAreRead runs it quickly.
func TestTiresiasClaims(t *testing.T) {
	if os.Getenv("MUSTER_FULL") != "1" {
		t.Skip("200 seeds; set MUSTER_FULL=1")
	}
	claims, err := Claims("tiresias", "")
	if err != nil {
		t.Fatal(err)
	}
	list, err := ClaimRun{}.Run(claims[0])
	if err != nil {
		t.Fatal(err)
	}
	known := misses(t)
	for i := range list {
		f := &list[i]
		t.Logf("%-46s %s, %s over %d seeds: %s", f.Metric, f.Ours(), f.Band(), f.Seeds, f.Verdict)
		if f.Verdict == catalogue.Missed && !known[missed(f)] {
			t.Errorf("%s is %s: the band is %s", f.Metric, f.Ours(), f.Band())
		}
	}
}
