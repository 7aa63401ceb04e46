package ptdp

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// ByHandDescription is what the rule of thumb says about itself.
var ByHandDescription = strategy.Description{
	Name: "fixed-3d", System: "Megatron-LM", Part: parallel.PlannerPart, Status: "after",
	Source: "the takeaways of PTD-P (Narayanan et al., SC 2021), as people follow them by hand",
	Idea:   "copies where the model fits a device, else tensor parallelism up to a node, else as few stages of equally many layers as fit, microbatches of up to four samples; nothing else is tried",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: parallel.Live,
}

// ByHandConfig has the sizes that a user insists on.
type ByHandConfig struct {
	// Tensor is over how many devices each layer is split, and Ranks how many a pipeline has; 0 is
	// what the rule of thumb says.
	Tensor int `yaml:"tensor" least:"0" most:"1024"`
	Ranks  int `yaml:"ranks" least:"0" most:"4096"`
}

// ByHandDefault has the rule of thumb choose.
func ByHandDefault() ByHandConfig { return ByHandConfig{} }

// ByHand is the rule of thumb: what a user writes who simulates nothing. It is what a planner has
// to be better than: the sizes are legal and fit, and nobody looked whether others are faster. Microbatches are those of Megatron-LM's examples.
type ByHand struct{ config ByHandConfig }

// NewByHand returns the rule; the configuration must be valid.
func NewByHand(c ByHandConfig) ByHand { return ByHand{c} }

var _ parallel.Planner = ByHand{}

// byNumber cuts into stages of equally many layers.
type byNumber struct{}

// Cut looks at nothing but the number of layers.
func (byNumber) Cut(layers []workload.Layer, stages int, _ pipeline.Params) ([]int32, pipeline.Why) {
	return pipeline.EqualCuts(len(layers), stages), ""
}

// Plans returns one plan: of 1F1B where it may have it, else of the first of the sequences.
func (b ByHand) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	usual := max(0, slices.IndexFunc(l.Sequences, func(q parallel.Sequence) bool { return q.Name == "1f1b" }))
	g := parallel.Grid{Sequences: l.Sequences[usual : usual+1], Cut: byNumber{}}
	if l.Stages {
		return g.Search(x, l)
	}
	var why parallel.Why
	inNode := int(x.On.Nodes[0].Count)
	l.Samples = 4
	// A size that the user insists on is the only one.
	first, last := 1, x.On.Len()
	if b.config.Ranks > 0 {
		first, last = b.config.Ranks, b.config.Ranks
	}
	for l.Ranks = first; l.Ranks <= last; l.Ranks++ {
		most := inNode
		if l.Tensor = inNode; l.Ranks == 1 {
			l.Tensor = 1
		}
		if b.config.Tensor > 0 {
			l.Tensor, most = b.config.Tensor, b.config.Tensor
		}
		for ; l.Tensor <= most; l.Tensor++ {
			found, not := g.Search(x, l)
			if not == "" {
				return found[:1], ""
			}
			why = cmp.Or(why, not)
		}
	}
	return nil, why
}
