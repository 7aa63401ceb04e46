package autopipe

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// SlicerDescription is what the slicer says about itself.
var SlicerDescription = strategy.Description{
	Name: "1f1b-sliced", System: "AutoPipe", Part: pipeline.SequencePart, Status: "after",
	Source: "AutoPipe (Liu et al., CLUSTER 2022; abstract, its slicer recalled)",
	Idea:   "1f1b whose first microbatches pass forward in halves, so that the last stage begins in half the time",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Halves},
	Goal:   "throughput", Needs: "a layer profile", Live: pipeline.Live,
}

// Slicer is 1F1B whose first microbatches pass forward in halves; it has nothing to configure. Each
// half goes to the next stage by itself, so that the last one begins after half the time. Backward
// passes are whole. It slices as few as gain all that the warm-up has to give: those behind them
// come while the first ranks wait for their first gradient anyway.
//
// Halves take half the time here, as published. Then to slice all microbatches would gain more where
// links are slow, but on a device a half takes more than that, so only those of the warm-up are.
type Slicer struct{}

var (
	_ pipeline.Ordering = Slicer{}
	_ parallel.Trier    = Slicer{}
)

// mostSliced bounds how many numbers of sliced microbatches are tried.
const mostSliced = 16

// Schedule tries every number of sliced microbatches up to those that the first rank begins before
// its first backward pass; where these are many, equally spaced ones.
func (Slicer) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	if c == nil {
		return sliced(ranks, microbatches, 0), ""
	}
	best := pipeline.Search{Costs: c}
	all := min(ranks, microbatches)
	for k := 0; k <= all; k += (all + mostSliced - 1) / mostSliced {
		if why := best.Try(sliced(ranks, microbatches, k), ""); why != "" {
			return best.Best, why
		}
	}
	return best.Best, ""
}

// Tries is how many numbers of sliced microbatches Schedule simulates at most.
func (Slicer) Tries(ranks, microbatches int) int { return min(ranks, microbatches, mostSliced) + 1 }

// sliced is 1F1B with so many microbatches in halves.
func sliced(ranks, microbatches, halved int) pipeline.Schedule {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	for r := range ranks {
		line := s.Line(r)
		line.Halved = int32(halved)
		line.Alternate(s.Chunks(r)[0], ranks-1-r)
	}
	return s
}

// whole is the sequence that is sliced, by which layers are cut first.
func whole(q parallel.Sequence) parallel.Sequence {
	if q.Order == (Slicer{}) {
		return parallel.Sequence{Name: q.Name + ", whole", Order: unsliced{}}
	}
	return q
}

// unsliced is 1F1B.
type unsliced struct{}

// Schedule is that of a slicer that slices nothing.
func (unsliced) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	return sliced(ranks, microbatches, 0), ""
}
