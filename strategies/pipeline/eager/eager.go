// Package eager orders microbatches as 1F1B does, with as many more under way at each link as
// hide the time that it takes (after Zhuang et al., "On Optimizing the Communication of Model
// Parallelism", MLSys 2023, whose ranks are ahead twice as far at every link). How far a rank is
// ahead of the next follows from what passes and the link take, and backward passes are in halves
// where that helps: both are ours. The paper is recalled, not read.
package eager

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "eager-1f1b", System: "Eager-1F1B", Part: pipeline.SequencePart, Status: "after",
	Source: "On Optimizing the Communication of Model Parallelism (Zhuang et al., MLSys 2023), recalled",
	Idea:   "one forward, one backward, with so many more microbatches under way at a link that nobody waits for it",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Config says how backward passes go.
type Config struct {
	// Halves has gradients of weights wait, as zb-h1 does, so that the rank before gets its
	// gradients sooner; a slow link is then hidden by fewer microbatches.
	Halves bool `yaml:"halves"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Halves: true} }

// Ordering is the order.
type Ordering struct{ config Config }

var _ pipeline.Ordering = Ordering{}

// New returns the order.
func New(c Config) Ordering { return Ordering{c} }

// Schedule lets each rank be ahead of the next by what the link between them asks for; without
// costs, by one microbatch.
func (o Ordering) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s, ahead := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks)), o.ahead(ranks, c)
	for r := range ranks {
		line, mine := s.Line(r), s.Chunks(r)[0]
		if !o.config.Halves {
			line.Alternate(mine, ahead[r])
			continue
		}
		for range ahead[r] {
			line.Do("F", mine)
		}
		for k := range microbatches {
			line.Do("FI", mine)
			if k >= r { // as in zb-h1: a late rank's gradients of weights fill its end
				line.Do("W", mine)
			}
		}
		for line.Do("W", mine) {
		}
	}
	return s, ""
}

// ahead is how many microbatches each rank begins before its first gradient. A microbatch that a
// rank begins goes over the link, forward and back through the next rank, and over the link again;
// meanwhile the rank is busy if it may begin as many as go through the slowest stage in that time.
func (o Ordering) ahead(ranks int, c *pipeline.Costs) []int {
	all := make([]int, ranks)
	period := unit.Duration(1)
	back := func(r int) unit.Duration { // until the gradient of a microbatch leaves a rank
		t := c.Compute(c.Stages[r].Input, r)
		if !o.config.Halves {
			t += c.Compute(c.Stages[r].Weight, r)
		}
		return t
	}
	for r := range ranks {
		if c != nil {
			period = max(period, c.Compute(c.Stages[r].Forward, r)+c.Compute(c.Stages[r].Input, r)+c.Compute(c.Stages[r].Weight, r))
		}
	}
	for r := ranks - 2; r >= 0; r-- {
		all[r] = all[r+1] + 1
		if c != nil {
			kib := c.Stages[r].OutputKiB
			turn := c.Compute(c.Stages[r].Forward, r) + c.Link(r, r+1).Takes(kib) + back(r+1) + c.Link(r+1, r).Takes(kib)
			all[r] = all[r+1] + max(1, int((turn+period-1)/period))
		}
	}
	return all
}
