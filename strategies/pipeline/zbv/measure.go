package zbv

import (
	_ "embed" // for Claim

	"slices"

	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published in closed form, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the three orders against what is published of passes that take equally long.
func Measure(uint64) map[string]float64 {
	r := pipelinetest.Range{}
	for p := 2; p <= 16; p++ {
		for _, m := range []int{2*p - 1, 2 * p, 4 * p} {
			c := pipelinetest.Case{Ranks: p, Microbatches: m, Forward: 10, Input: 10, Weight: 10}
			v, half, least := c.Time(V{}), c.Time(Half), c.Time(Min)
			r.Note("bubble", float64(slices.Max(v.Bubble)), 1)
			r.Note("kept", float64(pipelinetest.Most(v)), float64(2*p))
			r.Note("half_kept", float64(pipelinetest.Most(half)), float64(pipelinetest.Most(v)))
			r.Note("min_kept", float64(pipelinetest.Most(least)), float64(pipelinetest.Most(half)))
			if p == 16 {
				whole := 2 * float64(p-1) * float64(c.All()) // idle of 1F1B, whose stages are twice as long
				r.Note("half_idle", float64(half.Idle(0)), whole)
				r.Note("min_idle", float64(least.Idle(0)), whole)
				r.Note("min_of_all", float64(pipelinetest.Most(least)), float64(2*p))
			}
		}
	}
	return r
}
