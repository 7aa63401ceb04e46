package interleaved

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published in closed form, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the order against its closed forms, over drawn cases with two to five chunks.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	pipelinetest.Draw(seed, 50, func(c pipelinetest.Case) {
		p := c.Ranks
		for v := 2; v <= 5; v++ { // a case's stages are chunks: (p-1)T/v of a rank is (p-1) of theirs
			r.Ranks(c, New(Config{Chunks: v}), func(rank int) int { return min((v-1)*p+2*(p-1-rank)+1, v*c.Microbatches) })
		}
	})
	return r
}
