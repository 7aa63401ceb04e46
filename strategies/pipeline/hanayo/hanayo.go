// Package hanayo orders microbatches in waves, as Hanayo does (Liu et al., "Hanayo: Harnessing
// Wave-like Pipeline Parallelism for Enhanced Large Model Training Efficiency", SC 2023): the
// pipeline goes down the ranks and back again, once or several times, so that a rank waits
// only for a short stage and no stage is kept twice, as Chimera's are.
//
// Its order is not public in the words that we have (the abstract). Ours is list scheduling:
// a rank that is free does a backward pass before a forward one, and of several that of the
// lowest microbatch.
//
// Left out: to receive before it is time to compute, which every link of this step does.
package hanayo

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "hanayo", System: "Hanayo", Part: pipeline.SequencePart, Status: "after",
	Source: "Hanayo (Liu et al., SC 2023; abstract)",
	Idea:   "the pipeline goes down the ranks and back, in waves of short stages, each kept once",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks},
	Goal:   "throughput", Needs: "a layer profile of two stages a rank and wave", Live: pipeline.Live,
}

// Config says how often the pipeline goes down and back.
type Config struct {
	Waves int `yaml:"waves" least:"1" most:"64"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Waves: 1} }

// Ordering is the strategy.
type Ordering struct{ config Config }

var _ pipeline.Ordering = Ordering{}

// New returns the order; the configuration must be valid.
func New(c Config) Ordering { return Ordering{c} }

// Schedule lists by the costs or, where there are none, as if all passes took equally long.
func (o Ordering) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	stages := 2 * o.config.Waves * ranks
	if c == nil {
		like := pipeline.Like(stages)
		c = &like
	}
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Folded(ranks, stages, true))
	return s, s.List(c, false, func(_ *pipeline.Chooser, ready []pipeline.Choice) int { return pipeline.Urgent(ready, nil) })
}
