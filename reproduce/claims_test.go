package reproduce

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/report"
	"github.com/musterdl/muster/trace"
	"github.com/musterdl/muster/unit"
)

// claim says how a figure of one strategy compares with that of another, as the mean
// over the same seeds.
type claim struct {
	what   string
	of, by string
	figure func(*report.Result) float64
	op     report.Op
	bound  float64
}

func avgJCT(r *report.Result) float64      { return r.AvgJCTSec }
func preemptions(r *report.Result) float64 { return float64(r.Preemptions) }

// tiresiasClaims are those of the Tiresias paper in what can be simulated: gangs on 60
// devices that are only counted, 480 jobs, load 0.95, a restart of 60 s.
var tiresiasClaims = []claim{
	{what: "2D-Gittins vs FIFO with backfill", of: "gittins", by: "fifo", figure: avgJCT, op: report.AtMost, bound: 0.82},
	{what: "2D-Gittins vs SRSF, which knows run times", of: "gittins", by: "srsf", figure: avgJCT, op: report.AtMost, bound: 1.18},
	{what: "2D-LAS vs FIFO with backfill", of: "tiresias", by: "fifo", figure: avgJCT, op: report.AtMost, bound: 0.90},
	{what: "preemptions: two queues vs continuous LAS", of: "tiresias", by: "las", figure: preemptions, op: report.AtMost, bound: 0.5},
	{what: "head-of-line FIFO vs 2D-Gittins", of: "fifo-strict", by: "gittins", figure: avgJCT, op: report.AtLeast, bound: 2.7},
	{what: "head-of-line FIFO vs 2D-LAS", of: "fifo-strict", by: "tiresias", figure: avgJCT, op: report.AtLeast, bound: 2.7},
}

// TestTiresiasClaims runs ten seeds, where a claim fails only when its whole interval
// is on the wrong side; with MUSTER_LONG=1 it runs 200, where a claim fails unless its
// whole interval is on the right one.
func TestTiresiasClaims(t *testing.T) {
	for _, name := range []string{"fifo", "fifo-strict", "tiresias", "srsf", "las", "oracle"} {
		if _, ok := catalogue.Find(name); !ok {
			t.Skipf("the catalogue has no %s", name)
		}
	}
	seeds, long := 10, os.Getenv("MUSTER_LONG") == "1"
	if long {
		seeds = 200
	}
	names := []string{"fifo", "fifo-strict", "tiresias", "gittins", "srsf", "las"}
	c := Comparison{Setup: Defaults(), Seeds: seeds, Strategies: []string{"fifo", "fifo-strict", "tiresias", gittins(t), "srsf+oracle", "las"}}
	c.Setup.Trace, c.Setup.Cluster, c.Setup.Load, c.Setup.RestartCost = "gen:rw-a", "gpus:1x60", 0.95, unit.Minute
	compared, err := Compare(c)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]report.Result{}
	for i, name := range names {
		row := &compared.Rows[i]
		runs[name] = row.BySeed
		if row.Finished != row.Jobs || !row.Balanced {
			t.Errorf("%s: %d of %d jobs finished, balanced: %v", name, row.Finished, row.Jobs, row.Balanced)
		}
		t.Logf("%-12s average JCT %6.0f s [%.0f, %.0f], %4d preemptions", name, row.AvgJCT.Point, row.AvgJCT.Low, row.AvgJCT.High, row.Preemptions)
	}
	for _, c := range tiresiasClaims {
		ratio, err := report.PairedRatio(figures(runs[c.of], c.figure), figures(runs[c.by], c.figure), report.Bootstrap{Seed: bootstrapSeed})
		if err != nil {
			t.Fatal(err)
		}
		holds := report.Holds(ratio, c.op, c.bound)
		line := fmt.Sprintf("%-42s %.3f [%.3f, %.3f] %s %.2f over %d seeds", c.what, ratio.Point, ratio.Low, ratio.High, c.op, c.bound, ratio.N)
		switch {
		case holds:
			t.Log(line, "holds")
		case long || report.Holds(ratio, opposite[c.op], c.bound):
			t.Error(line, "DOES NOT HOLD")
		default:
			t.Log(line, "open: the interval holds the bound")
		}
	}
}

var opposite = map[report.Op]report.Op{report.AtMost: report.Above, report.AtLeast: report.Below}

func figures(runs []report.Result, of func(*report.Result) float64) []float64 {
	v := make([]float64, len(runs))
	for i := range runs {
		v[i] = of(&runs[i])
	}
	return v
}

// gittins is a composition file of 2D-Gittins with a history from three seeds that
// are not compared.
func gittins(t *testing.T) string {
	t.Helper()
	var samples []string
	for seed := uint64(10_001); seed <= 10_003; seed++ {
		jobs, err := trace.Open("gen:rw-a", trace.Options{Seed: seed, Devices: 60, Load: 0.95})
		if err != nil {
			t.Fatal(err)
		}
		for {
			job, truth, err := jobs.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			samples = append(samples, fmt.Sprintf("%.6f", float64(job.Gang)*truth.Duration.Seconds()))
		}
	}
	name := filepath.Join(t.TempDir(), "gittins.yaml")
	text := "name: gittins\norder: tiresias\noptions:\n  tiresias:\n    gittins: true\n    samples-device-s: [" + strings.Join(samples, ", ") + "]\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
