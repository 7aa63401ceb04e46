package zerobubble

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// How many microbatches a rank may have under way, whose gradients of inputs are to come.
const (
	asOneFOneB = iota // one, and one for each rank behind it
	untilBack         // as many as it can begin until the first one is back
	anyNumber
)

// When a rank with nothing else to do does gradients of weights. In each case it does so
// where it keeps as much as it may, and in the end.
const (
	whenShort  = iota // only then
	whenItFits        // where they fit in the wait, or the wait would make the rank the most idle
	whenIdle
)

// ahead is how many microbatches each rank may have under way.
func ahead(way, ranks, microbatches int, c *pipeline.Costs) []int {
	most := make([]int, ranks)
	back := unit.Duration(0) // from the end of a rank's pass forward until its gradient is there
	for r := ranks - 1; r >= 0; r-- {
		forward := c.Compute(c.Stages[r].Forward, r)
		switch way {
		case asOneFOneB:
			most[r] = ranks - r
		case untilBack:
			most[r] = 1 + int((back+forward-1)/max(1, forward))
		case anyNumber:
			most[r] = microbatches
		}
		back += forward + c.Compute(c.Stages[r].Input, r)
		if r > 0 {
			kib := c.Stages[r-1].OutputKiB
			back += c.Link(r-1, r).Takes(kib) + c.Link(r, r-1).Takes(kib)
		}
	}
	return most
}

// greedy is the rule in one of its variants: gradients of inputs first, then passes forward
// while the limits allow, then gradients of weights.
type greedy struct {
	most, ahead []int // by rank: activations that it may keep, microbatches under way
	weights     int
	forward     bool // before gradients of inputs, where both could begin

	ends   []unit.Time     // by rank: of its last pass; Never before the first
	bubble []unit.Duration // by rank: what it did nothing since the first
	worst  unit.Duration   // of these
}

// begin returns a schedule for whose orders the rule is to choose.
func (g *greedy) begin(microbatches int) pipeline.Schedule {
	ranks := len(g.most)
	g.ends, g.bubble, g.worst = slices.Repeat([]unit.Time{unit.Never}, ranks), make([]unit.Duration, ranks), 0
	return pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
}

// choose is the rule.
func (g *greedy) choose(r *pipeline.Chooser, ready []pipeline.Choice) int {
	pick := g.pick(r, ready)
	if pick >= 0 {
		if g.ends[r.Rank] != unit.Never {
			g.bubble[r.Rank] += r.Now.Sub(g.ends[r.Rank])
			g.worst = max(g.worst, g.bubble[r.Rank])
		}
		g.ends[r.Rank] = r.Now.Add(ready[pick].Takes)
	}
	return pick
}

func (g *greedy) pick(r *pipeline.Chooser, ready []pipeline.Choice) int {
	find := func(k pipeline.Kind) int {
		return slices.IndexFunc(ready, func(x pipeline.Choice) bool { return x.Kind == k })
	}
	mine := ready[0].Chunk
	short := int(r.Done(pipeline.Forward, mine)-r.Done(pipeline.Weight, mine)) >= g.most[r.Rank]
	f, i, w := find(pipeline.Forward), find(pipeline.Input), find(pipeline.Weight)
	if short || int(r.Keeps(mine)) >= g.ahead[r.Rank] {
		f = -1
	}
	_, left := r.Next(pipeline.Input, mine)
	switch {
	case f >= 0 && (i < 0 || g.forward):
		return f
	case i >= 0:
		return i
	case w >= 0 && (short || !left || g.weights == whenIdle || g.weights == whenItFits && g.fits(r, ready[w].Takes)):
		return w
	}
	return -1
}

// fits says whether a rank may do something that takes so long before what comes soon.
func (g *greedy) fits(r *pipeline.Chooser, takes unit.Duration) bool {
	return r.Now.Add(takes) <= r.Soon || g.bubble[r.Rank]+r.Soon.Sub(r.Now) > g.worst
}
