package onefoneb

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published in closed form, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the order against its closed forms, over drawn cases.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	pipelinetest.Draw(seed, 100, func(c pipelinetest.Case) {
		r.Ranks(c, Ordering{}, func(rank int) int { return c.Ranks - rank })
	})
	return r
}
