package chimera

import (
	"math/bits"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// MixDescription is what MixPipe says about itself.
var MixDescription = strategy.Description{
	Name: "mixpipe", System: "MixPipe", Part: pipeline.SequencePart, Status: "after",
	Source: "MixPipe (Zhang et al., DAC 2023; abstract)",
	Idea:   "Chimera's two pipelines; how many microbatches begin at once, and how soon they become more, is searched",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Chunks, strategy.Copies},
	Goal:   "throughput", Needs: "a layer profile, an even number of ranks", Live: pipeline.LiveCopies,
}

// Mix is MixPipe; it has nothing to configure.
type Mix struct{}

var _ pipeline.Ordering = Mix{}

// searched is how many numbers of microbatches that begin at once are tried.
const searched = 8

// Tries is how many orders Schedule simulates.
func (Mix) Tries(ranks, _ int) int {
	return 1 + (ranks+max(1, ranks/searched)-1)/max(1, ranks/searched)*(1+bits.Len(uint(ranks)))
}

// Schedule keeps the fastest order that fits the memory, by the clock of this step, or the
// leanest where none fits: Chimera's, or one of those that mixed writes. Without costs it is
// Chimera's.
func (Mix) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	first, why := New(Default()).Schedule(ranks, microbatches, nil)
	if why != "" || c == nil {
		return first, why
	}
	search := pipeline.Search{Costs: c}
	why = search.Try(first, "")
	for k := 1; k <= ranks; k += max(1, ranks/searched) {
		for rounds := 0; rounds <= ranks && why == ""; rounds = max(1, 2*rounds) {
			why = search.Try(mixed(ranks, microbatches, k, rounds, c))
		}
	}
	return search.Best, why
}

// mixed lets k microbatches of each direction begin, and then one for each that has ended
// (1F1B), but for the first rounds of each chunk two (2F1B).
func mixed(ranks, microbatches, k, rounds int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s, why := empty(ranks, microbatches)
	if why != "" {
		return s, why
	}
	return s, s.List(c, false, func(r *pipeline.Chooser, ready []pipeline.Choice) int {
		return pipeline.Urgent(ready, func(mine pipeline.Chunk) bool {
			return r.Keeps(mine) < int32(k)+min(int32(rounds), r.Done(pipeline.Backward, mine))
		})
	})
}
