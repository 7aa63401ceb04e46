// Package interleaved orders microbatches as Megatron-LM does where a rank holds several
// stages (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
// Using Megatron-LM", SC 2021): the pipeline goes over the ranks again and again, so that a
// stage is shorter and the last rank waits less for its first microbatch. With v chunks in a
// rank the bubble is that of 1F1B divided by v; activations are kept of more microbatches,
// and v times as much is sent.
//
// Left out: the rest of PTD-P, which is tensor and data parallelism around the pipeline.
package interleaved

import (
	"fmt"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "interleaved", System: "Megatron-LM", Part: pipeline.SequencePart, Status: "read",
	Source: "Megatron-LM PTD-P (Narayanan et al., SC 2021), NVIDIA/Megatron-LM",
	Idea:   "1F1B over ranks that hold several short stages each: the bubble shrinks with their number",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks},
	Goal:   "throughput", Needs: "a layer profile of as many stages as ranks and chunks make", Live: pipeline.Live,
}

// Config says how the pipeline is folded.
type Config struct {
	// Chunks is how many stages a rank holds; with one it would be 1f1b.
	Chunks int `yaml:"chunks" least:"2" most:"64"`
	// Group is how many microbatches pass a chunk before the rank's next chunk is due; 0 is
	// as many as there are ranks. More keep more activations and hide longer transfers.
	Group int `yaml:"group" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Chunks: 2} }

// Ordering is the order.
type Ordering struct{ config Config }

var _ pipeline.Ordering = Ordering{}

// New returns the order; the configuration must be valid.
func New(c Config) Ordering { return Ordering{c} }

// Fixed is true: it goes by the number of ranks and microbatches alone.
func (Ordering) Fixed() bool { return true }

// Schedule has chunk c of rank r be stage c*ranks+r. Passes forward go through the chunks
// group by group, and backward likewise from the last chunk; a rank is ahead by as many
// passes as the first microbatch needs to come back to it.
func (o Ordering) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	chunks, group := o.config.Chunks, o.config.Group
	if group == 0 {
		group = ranks
	}
	if rest := microbatches % group; group < ranks || group > microbatches || rest > 0 && rest < ranks {
		return pipeline.Schedule{}, pipeline.Why(fmt.Sprintf("%d microbatches in groups of %d on %d ranks: interleaving needs groups of %d to %d, and no last group with less than %d",
			microbatches, group, ranks, ranks, microbatches, ranks))
	}
	turns := make([]int, 0, chunks*microbatches) // the chunk of each pass forward; backward they are mirrored
	for first := 0; first < microbatches; first += group {
		for chunk := range chunks {
			for range min(group, microbatches-first) {
				turns = append(turns, chunk)
			}
		}
	}
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Folded(ranks, chunks*ranks, false))
	for r := range ranks {
		line, mine := s.Line(r), s.Chunks(r)
		ahead := min(2*(ranks-1-r)+(chunks-1)*group, len(turns))
		for i := range len(turns) + ahead {
			if i < len(turns) {
				line.Do("F", mine[turns[i]])
			}
			if i >= ahead {
				line.Do("B", mine[chunks-1-turns[i-ahead]])
			}
		}
	}
	return s, ""
}
