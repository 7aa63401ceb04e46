// Package equal cuts a model into stages of equally many layers: what a user
// writes who has no profile, and the null of this step. Where the number does
// not divide, the first stages get one layer more.
package equal

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "equal-layers", Part: pipeline.CutPart, Status: "null",
	Source: "the usual fixed configuration",
	Idea:   "as many layers in every stage",
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Partitioner is the cut; it has nothing to configure.
type Partitioner struct{}

var _ pipeline.Partitioner = Partitioner{}

// Cut looks at nothing but the number of layers.
func (Partitioner) Cut(layers []workload.Layer, stages int, p pipeline.Params) ([]int32, pipeline.Why) {
	if why := p.Check(layers, stages, stages); why != "" {
		return nil, why
	}
	return pipeline.EqualCuts(len(layers), stages), ""
}
