package pipeline_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/strategies/pipeline/equal"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"pgregory.net/rapid"
)

// TestSpare: what a plan leaves is what a count of every microsecond finds: how many of them no
// pass of a rank covers, and in how many stretches. Of equal stages it is (p-1) of (m+p-1).
func TestSpare(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p, m := rapid.IntRange(1, 6).Draw(t, "stages"), rapid.IntRange(1, 9).Draw(t, "microbatches")
		job := even(p, m, unit.Duration(rapid.IntRange(1, 9).Draw(t, "forward")), unit.Duration(rapid.IntRange(1, 9).Draw(t, "backward")))
		order := []pipeline.Ordering{gpipe.Ordering{}, onefoneb.Ordering{}}[rapid.IntRange(0, 1).Draw(t, "order")]
		made := build(t, equal.Partitioner{}, order, job, pipeline.Params{})
		timing, why := made.Timing(job.Layers, pipeline.Params{})
		if why != "" {
			t.Fatal(why)
		}
		idle, windows := 0, 0
		for _, spans := range timing.Spans {
			busy := make([]bool, timing.Makespan)
			for _, s := range spans {
				for at := s.Start; at < s.End; at++ {
					busy[at] = true
				}
			}
			for at, is := range busy {
				if !is {
					if idle++; at == 0 || busy[at-1] {
						windows++
					}
				}
			}
		}
		if part := float64(p-1) / float64(m+p-1); math.Abs(made.Spare.Idle()-part) > 1e-6 {
			t.Fatalf("%g of the time is idle, want %g", made.Spare.Idle(), part)
		}
		if want := math.Round(float64(idle) / float64(max(1, windows))); float64(made.Spare.Window) != want {
			t.Fatalf("windows of %d, want %g", made.Spare.Window, want)
		}
	})
}
