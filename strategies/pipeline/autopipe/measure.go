package autopipe

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published of it, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the cuts against those of brute force and against the seed.
func Measure(drawn uint64) map[string]float64 {
	r := pipelinetest.Range{}
	for name, layers := range map[string]int{"eight": 8, "twelve": 12} {
		within, cases := 0, 1000
		if layers > 8 {
			cases = 100 // each has 165 cuts to try
		}
		paralleltest.Draw(drawn, cases, layers, 4, func(x *parallel.Simulator, s parallel.Shape) {
			least := paralleltest.Least(x, s)
			chain, why := x.Chain(&s)
			best, not := improve(x, &s)
			if why+not != "" {
				panic(why + not) // without a limit of memory there is a cut
			}
			found := best[0].Result.Step
			r.Note(name, float64(found), float64(least))
			if found <= least+least/50 {
				within++
			}
			s.Cuts = seed(chain, &s)
			r.Note("seed", float64(found), float64(paralleltest.Step(x, &s)))
		})
		r[name+"_within"] = float64(within) / float64(cases)
	}
	return r
}
