package schemoe

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is known of ScheMoE's order, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the order of two chunks against every other, one chunk against its pieces one
// after the other, and what is chosen against all tokens at once.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{"worse": 0, "uneven_worse": 0}
	time := func(c *overlap.Chain, chunks int) unit.Duration {
		t, why := c.Time(overlap.ByStage(chunks))
		if why != "" {
			panic(why) // ScheMoE's order always runs
		}
		return t.Iteration
	}
	for name, even := range map[string]bool{"": true, "uneven_": false} {
		overlaptest.Chains(seed, 150, even, func(c *overlap.Chain) {
			least, orders := overlaptest.OfTwo(c)
			found := time(c, 2)
			if r.Note(name+"two", float64(found), float64(least)); found > least {
				r[name+"worse"]++
			}
			r["orders"] = float64(orders)
			var all unit.Duration
			for _, d := range c {
				all += d
			}
			r.Note("one", float64(time(c, 1)), float64(all))
		})
	}
	overlaptest.Layers(seed, 150, func(e *overlap.Experts) {
		chosen, why := e.Time(Scheduler{}.Chunk(e))
		one, again := e.Time(One{}.Chunk(e))
		if why+again != "" {
			panic(why + again) // every drawn layer can be timed
		}
		r.Note("chosen", float64(chosen.Iteration), float64(one.Iteration))
	})
	return r
}
