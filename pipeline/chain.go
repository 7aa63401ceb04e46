package pipeline

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Chain is layers to be cut into stages, by what each stage would cost: the one dynamic
// program behind all cuts. Times are those of a microbatch.
type Chain struct {
	Layers int
	// Stage is the time of stage s if it holds the layers from first to before end, Forever if
	// it cannot.
	Stage func(s, first, end int) unit.Duration
	// Link is the time of what passes into a layer from the stage before, both ways.
	Link func(layer int) unit.Duration
	// Latency passes besides, for each stage.
	Latency unit.Duration
}

// Join is the cost of a chain of stages with one more, and the link into it.
type Join func(before, stage, link unit.Duration) unit.Duration

// Slowest makes the slowest stage or link as fast as can be and, of equally fast cuts, the way
// through all of them as short. It returns that of the slowest, and Forever where there is no cut.
func (c *Chain) Slowest(stages int) (unit.Duration, []int32) {
	slowest, _ := c.Search(stages, unit.Forever, func(before, stage, link unit.Duration) unit.Duration {
		return max(before, stage, link)
	})
	if slowest == unit.Forever {
		return slowest, nil
	}
	_, cuts := c.Search(stages, slowest, func(before, stage, link unit.Duration) unit.Duration {
		return before + stage + link + c.Latency
	})
	return slowest, cuts
}

// Search finds the cut of least cost, in which no stage or link takes longer than the limit. Of
// equal cuts it takes the one with the earliest last cut.
func (c *Chain) Search(stages int, limit unit.Duration, join Join) (unit.Duration, []int32) {
	n := c.Layers
	best := slices.Repeat([]unit.Duration{unit.Forever}, n+1) // of layers 0..j-1 in the stages so far
	best[0] = 0
	from := make([][]int32, stages) // from[s][j]: where stage s begins if it ends before j
	for s := range stages {
		next := slices.Repeat([]unit.Duration{unit.Forever}, n+1)
		from[s] = make([]int32, n+1)
		for j := s + 1; j <= n-(stages-1-s); j++ {
			for i := s; i < j; i++ {
				if best[i] == unit.Forever {
					continue
				}
				stage, link := c.Stage(s, i, j), c.Link(i)
				if stage == unit.Forever || max(stage, link) > limit {
					continue
				}
				if d := join(best[i], stage, link); d < next[j] {
					next[j], from[s][j] = d, int32(i)
				}
			}
		}
		best = next
	}
	if best[n] == unit.Forever {
		return unit.Forever, nil
	}
	cuts := make([]int32, stages-1)
	for s, j := stages-1, int32(n); s > 0; s-- {
		j = from[s][j]
		cuts[s-1] = j
	}
	return best[n], cuts
}
