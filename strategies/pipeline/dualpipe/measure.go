package dualpipe

import (
	_ "embed" // for Claim

	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published in closed form, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds both orders against what their authors publish, over drawn cases in which
// gradients of weights take no longer than those of inputs, and nothing is hidden by what runs at once.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	note := func(c pipelinetest.Case, times string) {
		each := func(order string, t pipeline.Timing, stages int) {
			bound := unit.Duration(stages/2-1) * (c.All() + c.Input + c.Weight - 3*c.Weight)
			r.Note(order+times, float64(slices.Max(t.Bubble)), float64(bound))
			r.Note(order+"_kept", float64(pipelinetest.Most(t)), float64(stages+1))
		}
		each("v", c.Time(V{}), 2*c.Ranks)
		c.Ranks, c.Microbatches = 2*c.Ranks, 2*c.Microbatches
		each("both", c.Time(Both{}), c.Ranks)
	}
	pipelinetest.Draw(seed, 200, func(c pipelinetest.Case) {
		c.Weight = min(c.Weight, c.Input)
		if c.Forward <= c.Input {
			note(c, "_short")
		} else {
			note(c, "_long")
		}
		c.Input, c.Weight = c.Forward, c.Forward
		note(c, "_equal")
	})
	return r
}
