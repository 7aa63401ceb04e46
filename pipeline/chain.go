package pipeline

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Chain is layers to be cut into stages, by what each stage would cost: the one dynamic
// program behind all cuts. Times are those of a microbatch.
type Chain struct {
	Layers int
	// Before holds, for each place where a stage may stand, the places of which one has the stage
	// before, all of them with a lower number; of a first stage it holds none. Without it stage s
	// has place s and no other.
	Before [][]int32
	// Stage is the time of the stage in a place if it holds the layers from first to before end,
	// Forever if it cannot. More layers take no less.
	Stage func(place, first, end int) unit.Duration
	// Link is the time of what passes into a layer from the stage before, both ways.
	Link func(from, place, layer int) unit.Duration
	// Latency passes besides, for each stage.
	Latency unit.Duration
}

// Join is the cost of a chain of stages with one more, and the link into it.
type Join func(before, stage, link unit.Duration) unit.Duration

// Cut is where a chain is cut, and where its stages stand.
type Cut struct {
	Cost   unit.Duration // Forever where there is no cut
	First  []int32       // the first layer of each stage but the first
	Places []int32
}

// Slowest makes the slowest stage or link as fast as can be and, of equally fast cuts, the way
// through all of them as short. The cost is that of the slowest.
func (c *Chain) Slowest(stages int) Cut {
	least := c.Search(stages, unit.Forever, func(before, stage, link unit.Duration) unit.Duration {
		return max(before, stage, link)
	})
	if least.Cost == unit.Forever {
		return least
	}
	cut := c.Search(stages, least.Cost, func(before, stage, link unit.Duration) unit.Duration {
		return before + stage + link + c.Latency
	})
	cut.Cost = least.Cost
	return cut
}

// best is, for a place and the layers up to one, the least cost, and where that stage begins and
// its forerunner stands.
type best struct {
	cost        unit.Duration
	first, from int32
}

// Search finds the cut of least cost, in which no stage or link takes longer than the limit. Of
// equal cuts it takes the one with the earliest last cut.
func (c *Chain) Search(stages int, limit unit.Duration, join Join) Cut {
	n, before := c.Layers, c.Before
	if before == nil {
		before = make([][]int32, stages)
		for s := 1; s < stages; s++ {
			before[s] = []int32{int32(s - 1)}
		}
	}
	x := search{c, stages, limit, join}
	all, depth := make([][]best, len(before)), make([]int, len(before))
	end, last := best{cost: unit.Forever}, int32(-1)
	for p, froms := range before {
		all[p] = slices.Repeat([]best{{cost: unit.Forever}}, n+1)
		if len(froms) == 0 {
			x.extend(all[p], p, -1, 0, []best{{}})
		}
		for _, from := range froms {
			depth[p] = depth[from] + 1
			x.extend(all[p], p, int(from), depth[p], all[from])
		}
		if depth[p] == stages-1 && all[p][n].cost < end.cost {
			end, last = all[p][n], int32(p)
		}
	}
	cut := Cut{Cost: end.cost}
	if last < 0 {
		return cut
	}
	cut.First, cut.Places = make([]int32, stages-1), make([]int32, stages)
	for s, j := stages-1, int32(n); s >= 0; s-- {
		at := all[last][j]
		if cut.Places[s] = last; s > 0 {
			cut.First[s-1] = at.first
		}
		last, j = at.from, at.first
	}
	return cut
}

// search is what is looked for.
type search struct {
	*Chain
	stages int
	limit  unit.Duration
	join   Join
}

// extend tries a place for the stage behind all the cuts that end in another. It goes from short
// stages to long ones, so that it can stop where the stage alone costs more than the best.
func (x *search) extend(to []best, place, from, depth int, before []best) {
	for end := depth + 1; end <= x.Layers-(x.stages-1-depth); end++ {
		here := best{cost: unit.Forever}
		for first := min(end, len(before)) - 1; first >= depth; first-- {
			if before[first].cost == unit.Forever {
				continue
			}
			stage := x.Stage(place, first, end)
			if stage > min(x.limit, here.cost, to[end].cost) {
				break
			}
			link := x.Link(from, place, first)
			if stage == unit.Forever || link > x.limit {
				continue
			}
			if d := x.join(before[first].cost, stage, link); d <= here.cost {
				here = best{d, int32(first), int32(from)}
			}
		}
		if here.cost < to[end].cost {
			to[end] = here
		}
	}
}

// EqualCuts are those into stages of equally many layers; where the number does not divide, the
// first stages get one more.
func EqualCuts(layers, stages int) []int32 {
	cuts := make([]int32, stages-1)
	for i := range cuts {
		s := i + 1
		cuts[i] = int32(s*(layers/stages) + min(s, layers%stages))
	}
	return cuts
}
