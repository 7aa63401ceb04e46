package mgwfbp

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is known of merged gradients, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the rule and the program against every way to merge neighbours, by when the
// last gradient is exchanged, for 3,000 drawn stages.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{"rule_worse": 0, "program_worse": 0}
	overlaptest.Stages(seed, 3000, func(c *overlap.Costs) {
		var forward unit.Duration
		for _, l := range c.Layers {
			forward += l.Forward
		}
		soonest := overlaptest.Soonest(c) - forward
		note := func(name string, p overlap.Plan) {
			found := overlaptest.Iteration(&p, c) - forward
			if r.Note(name, float64(found), float64(soonest)); found > soonest {
				r[name+"_worse"]++
			}
		}
		note("program", Optimal{}.Merge(c))
		note("rule", Rule{}.Merge(c))
		note("single", overlap.Single(len(c.Layers)))
		note("whole", overlap.Whole(len(c.Layers)))
	})
	return r
}
