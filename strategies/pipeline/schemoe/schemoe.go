// Package schemoe cuts the tokens of a mixture of experts into chunks, so that some are on
// their way while others compute (ScheMoE, Shi et al., EuroSys 2024; Fragile-azalea/ScheMoE).
// How many chunks, which all-to-all and which codec take least is searched on the model of
// their costs, for its order of the pieces: that is the best there is for two chunks whose
// pieces take equally long there and back.
//
// Left out: what a codec does to the loss, so that whoever offers one must know that; and the
// copy in memory between the legs of a hierarchical all-to-all.
package schemoe

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
)

// OneDescription is what one chunk says about itself.
var OneDescription = strategy.Description{
	Name: "one-chunk", Part: overlap.ExpertsPart, Status: "null",
	Source: "the field",
	Idea:   "all tokens at once, not compressed, to one device after the other",
	Goal:   "throughput", Needs: "times and sizes of a layer of experts", Live: live,
}

// Description is what ScheMoE says about itself.
var Description = strategy.Description{
	Name: "schemoe", System: "ScheMoE", Part: overlap.ExpertsPart, Status: "read",
	Source: "ScheMoE (Shi et al., EuroSys 2024; abstract), Fragile-azalea/ScheMoE",
	Idea:   "chunks of tokens compute while others are sent: number, all-to-all and codec that take least",
	Goal:   "throughput", Needs: "times and sizes of a layer of experts", Live: live,
}

const live = "cannot, because no run here has experts on several devices"

// most is how many chunks are tried.
const most = 16

// One is one chunk.
type One struct{}

// Scheduler is ScheMoE.
type Scheduler struct{}

var _, _ overlap.Chunker = One{}, Scheduler{}

// Chunk cuts nothing.
func (One) Chunk(*overlap.Experts) overlap.Choice {
	return overlap.Choice{Chunks: 1, Kind: overlap.Pairwise}
}

// Chunk tries every number of chunks, all-to-all and codec, and takes the first of the best.
func (Scheduler) Chunk(e *overlap.Experts) overlap.Choice {
	best, least := One{}.Chunk(e), unit.Forever
	for chunks := 1; chunks <= most; chunks++ {
		for _, kind := range overlap.Kinds {
			for codec := range len(e.Codecs) + 1 {
				choice := overlap.Choice{Chunks: chunks, Kind: kind, Codec: codec}
				if t, why := e.Time(choice); why == "" && t.Iteration < least {
					best, least = choice, t.Iteration
				}
			}
		}
	}
	return best
}
