// Package wfbp sends the gradients of each layer as soon as they are there, while the layers
// before it compute theirs (wait-free backpropagation, Poseidon, Zhang et al., USENIX ATC
// 2017), and, as what one would do without, all of them when the backward pass is over.
package wfbp

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline/overlap"
)

// WholeDescription is what one exchange says about itself.
var WholeDescription = strategy.Description{
	Name: "one-exchange", Part: overlap.GradientsPart, Status: "null",
	Source: "the field",
	Idea:   "one message with all gradients, when the backward pass is over",
	Goal:   "throughput", Needs: "a layer profile", Live: overlap.Live,
}

// Description is what wait-free backpropagation says about itself.
var Description = strategy.Description{
	Name: "wfbp", System: "Poseidon", Part: overlap.GradientsPart, Status: "recalled",
	Source:     "Poseidon (Zhang et al., USENIX ATC 2017)",
	Idea:       "a message for each layer, sent while the layers before it compute",
	Challenges: []string{"C9"},
	Goal:       "throughput", Needs: "a layer profile", Live: overlap.Live,
}

// Whole is one exchange.
type Whole struct{}

// Single is wait-free backpropagation.
type Single struct{}

var _, _ overlap.Merger = Whole{}, Single{}

// Merge merges all layers.
func (Whole) Merge(c *overlap.Costs) overlap.Plan { return overlap.Whole(len(c.Layers)) }

// Merge merges nothing.
func (Single) Merge(c *overlap.Costs) overlap.Plan { return overlap.Single(len(c.Layers)) }
