package reproduce

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/strategy"
)

// TestMixedClaim: what the strategy measures beside simulations, the mean over all
// traces, and a plot of some of it.
func TestMixedClaim(t *testing.T) {
	e := coin(strings.Replace(measuredClaim, "metrics:", `traces: {a: gen:rw-a-prime?jobs=40, b: gen:rw-a-prime?jobs=20}
cluster: gpus:4x8
strategies: {fifo: fifo}
plots:
  - {plot: half, x: sides, y: jobs, at: [1, 2, 3], curves: {ours: [throws, "", jobs fifo on all]}}
metrics:
  - {metric: jobs, figure: jobs fifo on all, published: 31, low: 30, high: 30}`, 1))
	c, err := ReadClaim(e)
	if err != nil {
		t.Fatal(err)
	}
	list, err := ClaimRun{}.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := verdicts(list); got != "holds holds missed reported reported" {
		t.Errorf("verdicts %q", got)
	}
	ours, published := c.curve(&c.Plots[0], "ours", list)
	if len(ours) != 2 || ours[0].Y != 1 || ours[1].X != 3 || ours[1].Y != 30 || len(published) != 1 || published[0].Y != 31 {
		t.Errorf("drawn %v and %v", ours, published)
	}
	var b bytes.Buffer
	if err := c.Draw(&b, &c.Plots[0], list); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); !strings.Contains(s, "<svg") || !strings.Contains(s, ">ours<") {
		t.Errorf("no drawing: %.80s", s)
	}
}

// TestInner: strategies that an inner score orders as the goal does correlate fully, and
// with a minus before one side the other way round.
func TestInner(t *testing.T) {
	for inner, want := range map[string]float64{"avg_jct_s avg_wait_s": 1, "-avg_jct_s avg_wait_s": -1} {
		claim := strings.Replace(simulatedClaim, "seeds: 2", "seeds: 2\ninner: "+inner, 1)
		claim = strings.Replace(claim, "metrics:", "metrics:\n  - {metric: six, figure: jobs srtf on a, published: 40}", 1)
		claim = strings.Replace(claim, "  fifo: fifo", "  fifo: fifo\n  srtf: srtf", 1)
		list := run(t, ClaimRun{}, catalogue.Entry{Description: strategy.Description{Name: "two"}, Claim: []byte(claim)})
		f := &list[len(list)-1]
		if !strings.Contains(f.Metric, "rank correlation") || math.Abs(*f.Measured-want) > .51 || *f.Measured*want <= 0 {
			t.Errorf("%s: %s is %s", inner, f.Metric, f.Ours())
		}
	}
}
