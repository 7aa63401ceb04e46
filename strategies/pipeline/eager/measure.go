package eager

import (
	_ "embed" // for Claim
	"math/rand/v2"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what must hold, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the order against 1F1B over drawn cases with links.
func Measure(plain pipeline.Ordering) func(seed uint64) map[string]float64 {
	return func(seed uint64) map[string]float64 {
		r, dice := pipelinetest.Range{"whole_slower": 0}, rand.New(rand.NewPCG(seed, 11))
		pipelinetest.Draw(seed, 100, func(c pipelinetest.Case) {
			link := 1 + unit.Duration(dice.Int64N(int64(c.Forward)))
			base := c.Over(plain, link)
			for name, o := range map[string]pipeline.Ordering{"plain": plain, "whole": New(Config{}), "halves": New(Config{Halves: true})} {
				t := c.Over(o, link)
				r.Note(name+"_cost", float64(t.Makespan-c.Time(o).Makespan), float64(2*unit.Duration(c.Ranks-1)*link))
				r.Note(name+"_kept", float64(pipelinetest.Most(t)), float64(pipelinetest.Most(base)))
				if name == "whole" && t.Makespan > base.Makespan {
					r["whole_slower"]++
				}
			}
		})
		return r
	}
}
