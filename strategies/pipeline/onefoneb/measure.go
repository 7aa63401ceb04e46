package onefoneb

import (
	_ "embed" // for Claim
	"fmt"
	"math/rand/v2"

	"github.com/musterdl/muster/pipeline"
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

// Shaken shakes a node of a pipeline with levels and of one without, by the same draws.
func Shaken(seed uint64) map[string]float64 {
	r := map[string]float64{}
	shake(r, "flat", Ordering{}, rand.New(rand.NewPCG(seed, 4)))
	shake(r, "levels", New(Config{Node: ranks / nodes, Ahead: ranks / nodes}), rand.New(rand.NewPCG(seed, 4)))
	return r
}

// The pipeline that is shaken, and by how much a pass is shorter or longer at most, as a part
// of it.
const (
	nodes, ranks, microbatches = 4, 16, 64
	most                       = .5
)

// shake notes what a step takes when the passes of one drawn node are shorter or longer by chance,
// in the mean as long as those of others, as a part of what it takes in calm.
func shake(figures map[string]float64, name string, o Ordering, dice *rand.Rand) {
	s, why := o.Schedule(ranks, microbatches, nil)
	c := pipeline.Like(ranks)
	for i := range c.Stages {
		c.Stages[i].Forward, c.Stages[i].Input, c.Stages[i].Weight = 1000, 1000, 1000
	}
	time := func() pipeline.Timing {
		t, not := s.Time(c)
		if why+not != "" {
			panic(fmt.Sprintf("%s: %s%s", name, why, not))
		}
		return t
	}
	calm := time()
	figures[name+"_calm"], figures[name+"_kept"] = float64(calm.Makespan), float64(pipelinetest.Most(calm))
	const draws = 20
	for range draws {
		node := dice.IntN(nodes)
		c.Varies = func(rank int, _ pipeline.Op) float64 {
			if rank*nodes/ranks != node {
				return 1
			}
			return 1 + most*(2*dice.Float64()-1)
		}
		figures[name+"_moved"] += (float64(time().Makespan)/float64(calm.Makespan) - 1) / draws
	}
}
