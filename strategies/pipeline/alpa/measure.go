package alpa

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is known of the form, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the form against the steps of 1F1B and of GPipe.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	paralleltest.Draw(seed, 1000, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
		shape, cost, why := cut(x, &s, true)
		if why != "" {
			panic(why) // without a limit of memory there is a cut
		}
		r.Note("alternate", float64(paralleltest.Step(x, &shape)), float64(cost))
		shape.Sequence = paralleltest.GPipe
		r.Note("all", float64(paralleltest.Step(x, &shape)), float64(cost))
	})
	return r
}
