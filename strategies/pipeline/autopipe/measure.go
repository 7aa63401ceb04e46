package autopipe

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published of it, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the cuts against those of brute force and against the seed, and the slicer against
// what it slices.
func Measure(drawn uint64) map[string]float64 {
	r := pipelinetest.Range{"sliced_beaten": 0}
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
	pipelinetest.Draw(drawn, 100, func(c pipelinetest.Case) { slice(r, c) })
	return r
}

// slice notes what a slicer makes of a pipeline of equal stages.
func slice(r pipelinetest.Range, c pipelinetest.Case) {
	costs := pipeline.Like(c.Ranks)
	for i := range costs.Stages {
		costs.Stages[i].Forward, costs.Stages[i].Input, costs.Stages[i].Weight = 2*c.Forward, c.Input, c.Weight // its halves are alike
	}
	timed := func(s pipeline.Schedule, why pipeline.Why) pipeline.Timing {
		t, not := s.Time(costs)
		if why+not != "" {
			panic(why + not) // a pipeline of equal stages has an order
		}
		return t
	}
	whole, got := timed(sliced(c.Ranks, c.Microbatches, 0), ""), timed(Slicer{}.Schedule(c.Ranks, c.Microbatches, &costs))
	last := c.Ranks - 1
	start := func(t *pipeline.Timing) float64 { return float64(t.Spans[last][0].Start) }
	r.Note("begins", start(&got), start(&whole))
	r.Note("sliced", float64(got.Makespan), float64(whole.Makespan))
	// What 1F1B takes longer is half of a pass forward on each rank but the last.
	r.Note("gains", float64(whole.Makespan-got.Makespan), float64(last)*float64(c.Forward))
	for k := range c.Ranks + 1 {
		if t := timed(sliced(c.Ranks, c.Microbatches, k), ""); t.Makespan < got.Makespan {
			r["sliced_beaten"]++
		}
	}
}
