// Package pipedream orders microbatches one forward, one backward without ever emptying the
// pipeline (PipeDream, Narayanan et al., SOSP 2019): a stage takes new weights after each
// backward pass, and keeps those that microbatches under way began with, so that each backward
// pass uses what its forward pass used. A rank is never idle but for the first and the last
// microbatches; the gradients are late by as many microbatches as there are stages behind.
// HetPipe (Park et al., ATC 2020) takes new weights by waves of as many microbatches as it has
// under way, so that a worker exchanges one sum a wave with the others.
//
// A pipeline that is not emptied has no iterations. What is planned is a run of them from empty
// to empty, flush-after iterations long, as between two checkpoints or two epochs; an iteration
// takes its part of that.
//
// Left out: that gradients which are late teach less, so that a job may need more iterations;
// stages on several ranks in turn and versions that agree between stages (vertical sync). Of
// HetPipe, its cut on unlike GPUs, the server of parameters, and how far its workers may be apart:
// the schedule is that of one of them, which waits for none.
package pipedream

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what PipeDream says about itself.
var Description = strategy.Description{
	Name: "pipedream", System: "PipeDream", Part: pipeline.SequencePart, Status: "read",
	Source: "PipeDream (Narayanan et al., SOSP 2019), msr-fiddle/pipedream",
	Idea:   "one forward, one backward, never a flush: each microbatch keeps the weights with which it began",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Copies},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.LiveCopies,
}

// HetDescription is what HetPipe says about itself.
var HetDescription = strategy.Description{
	Name: "hetpipe", System: "HetPipe", Part: pipeline.SequencePart, Status: "after",
	Source: "HetPipe (Park et al., ATC 2020; abstract and what others tell of its waves)",
	Idea:   "as PipeDream with new weights once a wave, of as many microbatches as are under way",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Copies},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.LiveCopies,
}

// Config says how long the pipeline stays full.
type Config struct {
	// FlushAfter is after how many iterations it is emptied.
	FlushAfter int `yaml:"flush-after" least:"1"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{FlushAfter: 10} }

// HetConfig says besides how many microbatches are under way.
type HetConfig struct {
	FlushAfter int `yaml:"flush-after" least:"1"`
	// InFlight is how many that are, and a wave; 0 is as many as there are ranks.
	InFlight int `yaml:"in-flight" least:"0"`
}

// HetDefault returns the configuration used where none is given.
func HetDefault() HetConfig { return HetConfig{FlushAfter: Default().FlushAfter} }

// Ordering is PipeDream.
type Ordering struct{ config Config }

// Het is HetPipe.
type Het struct{ config HetConfig }

var _, _ pipeline.Ordering = Ordering{}, Het{}

// New returns PipeDream; the configuration must be valid.
func New(c Config) Ordering { return Ordering{c} }

// NewHet returns HetPipe; the configuration must be valid.
func NewHet(c HetConfig) Het { return Het{c} }

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (Ordering) Fixed() bool { return true }

// Schedule has as many microbatches under way as there are ranks.
func (o Ordering) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	return full(ranks, microbatches*o.config.FlushAfter, ranks, 1), ""
}

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (Het) Fixed() bool { return true }

// Schedule has a wave under way.
func (h Het) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	wave := h.config.InFlight
	if wave == 0 {
		wave = ranks
	}
	return full(ranks, microbatches*h.config.FlushAfter, wave, wave), ""
}

// full lets so many microbatches be under way. The last rank does each at once; where there
// are more than ranks, those before it are ahead in proportion.
func full(ranks, microbatches, under, wave int) pipeline.Schedule {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	s.Wave = int32(wave)
	for r := range ranks {
		ahead := ranks - 1 - r
		if under > ranks && ranks > 1 {
			ahead = (under - 1) * ahead / (ranks - 1)
		}
		s.Line(r).Alternate(s.Chunks(r)[0], min(ahead, under-1))
	}
	return s
}
