package chimera

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
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

// Schedule keeps the fastest order that fits the memory, by the clock of this step, or the
// leanest where none fits: Chimera's, or one of those that mixed writes. Without costs it is
// Chimera's.
func (Mix) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	best, why := New(Default()).Schedule(ranks, microbatches, nil)
	if why != "" || c == nil {
		return best, why
	}
	score := scored(&best, c)
	for k := 1; k <= ranks; k += max(1, ranks/searched) {
		for rounds := 0; rounds <= ranks; rounds = max(1, 2*rounds) {
			s, why := mixed(ranks, microbatches, k, rounds, c)
			if why != "" {
				return s, why
			}
			if now := scored(&s, c); now.before(score) {
				best, score = s, now
			}
		}
	}
	return best, ""
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

// score is by what schedules are compared.
type score struct {
	over  int64 // what the fullest rank needs beyond its memory
	takes unit.Duration
	peak  int64
}

func (s score) before(t score) bool {
	switch {
	case s.over != t.over:
		return s.over < t.over
	case s.takes != t.takes:
		return s.takes < t.takes
	}
	return s.peak < t.peak
}

// scored times a schedule; one that cannot run, which none here is, comes last.
func scored(s *pipeline.Schedule, c *pipeline.Costs) (n score) {
	t, why := s.Time(*c)
	if why != "" {
		return score{over: 1 << 62}
	}
	for _, held := range t.Peak {
		n.peak = max(n.peak, held.Total())
	}
	if limit := int64(c.Memory) << 10; limit > 0 {
		n.over = max(0, n.peak-limit)
	}
	n.takes = t.Makespan
	return n
}
