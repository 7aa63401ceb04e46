// Package onefoneb orders microbatches one forward, one backward (PipeDream,
// Narayanan et al., SOSP 2019; in the flushing form of DAPPLE, Fan et al., PPoPP
// 2021, which everybody runs today). A stage runs just enough forward passes for
// the last stage to begin, then alternates, so that it keeps the activations of
// no more microbatches than there are stages behind it. Its bubble is that of
// GPipe; what it saves is memory.
//
// PipeDream without flush, in which microbatches of different iterations overlap
// and each keeps its own version of the weights, changes what is learned and not
// only when: it is another strategy, pipedream.
package onefoneb

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "1f1b", System: "PipeDream", Part: pipeline.SequencePart, Status: "read",
	Source: "PipeDream (Narayanan et al., SOSP 2019), DAPPLE (Fan et al., PPoPP 2021)",
	Idea:   "one forward, one backward: GPipe's time, memory for as many microbatches as there are stages",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Config says how the ranks lie in nodes.
type Config struct {
	// Node is how many neighbouring ranks are one node, Ahead how many more microbatches are
	// under way at each border between nodes. Each of them takes memory on all ranks before it.
	Node  int `yaml:"node" least:"1"`
	Ahead int `yaml:"ahead" least:"0"`
}

// Default returns the configuration used where none is given: a pipeline without levels.
func Default() Config { return Config{Node: 1} }

// Ordering is the order. Its zero value is one without levels.
type Ordering struct{ config Config }

var _ pipeline.Ordering = Ordering{}

// New returns the order; the configuration must be valid.
func New(c Config) Ordering { return Ordering{c} }

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (Ordering) Fixed() bool { return true }

// Schedule lets each rank be ahead by the number of ranks behind it, and by what is under way at
// the borders behind it besides.
func (o Ordering) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s, node := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks)), max(1, o.config.Node)
	for r := range ranks {
		borders := (ranks-1)/node - r/node
		s.Line(r).Alternate(s.Chunks(r)[0], ranks-1-r+borders*o.config.Ahead)
	}
	return s, ""
}
