package zerobubble

import (
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble/rounds"
)

// AutoDescription is what the automatic order says about itself.
var AutoDescription = strategy.Description{
	Name: "zero-bubble", System: "Zero Bubble", Part: pipeline.SequencePart, Status: "after",
	Source: "Zero Bubble (Qi et al., ICLR 2024), its automatic scheduler, beside a rule of ours and zb-h1; sail-sg/zero-bubble-pipeline-parallelism",
	Idea:   "the fastest of several schedules that greedy rules make from costs and a memory limit, with gradients of weights in the gaps",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Config says how much the automatic order may keep.
type Config struct {
	// Pending is of how many microbatches a rank may keep activations, in multiples of the
	// number of ranks; beyond two no bubble is left to fill. Where the memory of devices is
	// known, that counts instead.
	Pending float64 `yaml:"pending" above:"0" most:"2"`
}

// Default returns the configuration used where none is given: as much as 1F1B's first rank.
func Default() Config { return Config{Pending: 1} }

// Auto is the automatic order.
type Auto struct{ config Config }

var _ pipeline.Ordering = Auto{}

// New returns the automatic order; the configuration must be valid.
func New(c Config) Auto { return Auto{c} }

// Schedule returns the best schedule of those that it finds within the memory. H1 is among them
// where it fits, since the rule alone is sometimes slower. Without costs it returns one that
// keeps what 1F1B does, so that a cut is not refused for memory that the order can do without.
func (a Auto) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	if c == nil {
		like := pipeline.Like(ranks)
		least := ahead(asOneFOneB, ranks, microbatches, &like)
		g := greedy{most: least, ahead: least}
		s := g.begin(microbatches)
		why := s.List(&like, true, g.choose)
		return s, why
	}
	best := pipeline.Search{Costs: c}
	// Who may keep more is faster, mostly, and what is no faster than that is not written to its end.
	for _, most := range slices.Backward(a.levels(ranks, microbatches, c)) {
		if slices.Min(most) >= min(ranks, microbatches) {
			if why := best.Try(H1{}.Schedule(ranks, microbatches, c)); why != "" {
				return best.Best, why
			}
		}
		if why := vary(&best, microbatches, most); why != "" {
			return best.Best, why
		}
	}
	return best.Best, ""
}

// levels are how many activations each rank may keep. What they are does not depend on the
// limit, so that a higher one only adds schedules to choose from; where devices' memory is known
// all are tried, and the score tells which fit.
func (a Auto) levels(ranks, microbatches int, c *pipeline.Costs) (levels [][]int) {
	for _, kept := range []int{1, (ranks + 1) / 2, ranks, 3 * ranks / 2, 2 * ranks} {
		if len(levels) > 0 && (c.Memory == 0 && float64(kept) > a.config.Pending*float64(ranks) || slices.Min(levels[len(levels)-1]) >= microbatches) {
			break // more is not allowed, or there is no more to keep
		}
		most := slices.Repeat([]int{kept}, ranks)
		if c.Memory > 0 { // as many as go into the memory in which each rank can keep so many
			least := int64(0)
			for _, s := range c.Stages {
				least = max(least, c.ParamCopies*s.ParamKiB+int64(kept)*s.ActivationKiB)
			}
			for r, s := range c.Stages {
				most[r] = max(kept, int(min(int64(microbatches), (least-c.ParamCopies*s.ParamKiB)/max(1, s.ActivationKiB))))
			}
		}
		levels = append(levels, most)
	}
	return levels
}

// Tries is how many orders Schedule simulates at most.
func (Auto) Tries(ranks, microbatches int) int {
	const levels = 5
	if ranks*microbatches > large {
		return levels * (1 + 2)
	}
	return levels * (1 + 3*3*2)
}

// large is how many passes forward make a schedule of which only the best variants of our rule are
// tried, since each takes long: of 150 small ones with drawn costs, in twice 1F1B's memory, they
// were .1 % slower than the best of all.
const large = 2048

// vary tries what the rule makes in each of its variants.
func vary(best *pipeline.Search, microbatches int, most []int) pipeline.Why {
	for _, g := range variants(len(most), microbatches, most, best.Costs) {
		if why := best.List(g.begin(microbatches), true, g.choose); why != "" {
			return why
		}
	}
	for i := range rounds.Variants {
		if s, end, fits := rounds.Schedule(i, most, microbatches, best.Costs, best.Limit()); fits {
			if why := best.TryFrom(s, end.Sub(0)); why != "" {
				return why
			}
		}
	}
	return ""
}

// variants are those of our own rule.
func variants(ranks, microbatches int, most []int, c *pipeline.Costs) (all []*greedy) {
	ways, times := []int{asOneFOneB, untilBack, anyNumber}, []int{whenShort, whenItFits, whenIdle}
	if ranks*microbatches > large {
		ways, times = []int{untilBack}, []int{whenIdle}
	}
	for _, way := range ways {
		for _, weights := range times {
			for _, forward := range []bool{false, true} {
				all = append(all, &greedy{most: most, ahead: ahead(way, ranks, microbatches, c), weights: weights, forward: forward})
			}
		}
	}
	return all
}
