package hanayo

import (
	_ "embed" // for Claim

	"fmt"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is expected of the order, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure tells the idle share of four ranks with four microbatches, and holds drawn cases against
// N T + (p-1) T / 2W.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	for _, waves := range []int{1, 2, 4} {
		o := New(Config{waves})
		t := pipelinetest.Case{Ranks: 4, Microbatches: 4, Forward: 2, Input: 2, Weight: 2}.Time(o)
		r[fmt.Sprint("idle_", waves)] = t.IdleShare()
		pipelinetest.Draw(seed, 50, func(c pipelinetest.Case) {
			t := c.Time(o)
			all := c.All() * unit.Duration(2*waves*c.Microbatches)
			r.Note("makespan", float64(t.Makespan), float64(all+c.All()*unit.Duration(c.Ranks-1)))
		})
	}
	return r
}
