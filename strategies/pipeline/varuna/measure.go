package varuna

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is expected of the order, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the order against GPipe's that computes every forward pass again, which takes
// (m+p-1) times all passes of a microbatch, over drawn cases. The order that is made without
// costs is for passes that take equally long, and so are the cases.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	pipelinetest.Draw(seed, 50, func(c pipelinetest.Case) {
		c.Input, c.Weight = c.Forward, c.Forward
		t := c.Time(Ordering{})
		r.Note("gpipe", float64(t.Makespan), float64(c.Microbatches+c.Ranks-1)*float64(c.All()+c.Forward))
	})
	return r
}
