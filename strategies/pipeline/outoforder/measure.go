package outoforder

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is expected of delayed gradients, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the order against the closed forms of ZB-H1 and of 1F1B, over drawn cases.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	pipelinetest.Draw(seed, 50, func(c pipelinetest.Case) {
		costs := pipeline.Like(c.Ranks)
		for i := range costs.Stages {
			costs.Stages[i].Forward, costs.Stages[i].Input, costs.Stages[i].Weight = c.Forward, c.Input, c.Weight
		}
		s, why := Ordering{}.Schedule(c.Ranks, c.Microbatches, &costs)
		score, again := s.Score(&costs)
		if why+again != "" {
			panic(why + again) // every case has an order
		}
		idle := float64(score.Makespan - unit.Duration(c.Microbatches)*c.All())
		r.Note("h1", idle, float64(c.Ranks-1)*float64(max(c.Input, c.Forward+max(0, c.Input-c.Weight))))
		r.Note("flushing", idle, float64(c.Ranks-1)*float64(c.All()))
		r.Note("kept", float64(score.PeakKiB), float64(c.Ranks))
	})
	return r
}
