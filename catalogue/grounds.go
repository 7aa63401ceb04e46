package catalogue

import (
	"fmt"

	"github.com/musterdl/muster/allocate/sites"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/measured"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/spot"
	"github.com/musterdl/muster/pipeline/straggler"
	"github.com/musterdl/muster/pipeline/unlike"
	"github.com/musterdl/muster/strategies/pipeline/autopipe"
	"github.com/musterdl/muster/strategies/pipeline/eager"
	"github.com/musterdl/muster/strategies/pipeline/interleaved"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/oobleck"
	"github.com/musterdl/muster/strategies/pipeline/ptdp"
	"github.com/musterdl/muster/strategies/pipeline/varuna"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

// Grounds is what strategies go by and none of them decides, held against what was measured.
var Grounds = []Entry{
	Entry{Description: strategy.Description{Name: "published-steps", System: "Published step times", Step: "pipeline",
		Idea: "How long a step of a large model takes, from its shape"}}.claims(measured.Steps, measured.MeasureSteps(func(chunks int) pipeline.Ordering {
		if chunks == 1 {
			return onefoneb.Ordering{}
		}
		return interleaved.New(interleaved.Config{Chunks: chunks})
	})),
	Entry{Description: strategy.Description{Name: "sailor", System: "Sailor", Step: "pipeline",
		Idea: "How long a step of a plan takes, from the shape of the model"}}.claims(measured.Sailor, measured.MeasureSailor),
	Entry{Description: strategy.Description{Name: "spot", System: "Oobleck, Varuna, SWARM", Step: "pipeline",
		Idea: "What gets done of a large model on machines that come and go"}}.claims(spot.Claim, spot.Measure(oobleck.New(oobleck.Default()), varuna.Morph{}, onefoneb.Ordering{})),
	Entry{Description: strategy.Description{Name: "straggler", System: "What-if analysis of stragglers", Step: "pipeline",
		Idea: "What slow workers cost, from a trace of their operations"}}.claims(straggler.Claim, straggler.Measure),
	Entry{Description: strategy.Description{Name: "unlike-layers", System: "Planning for unlike layers", Step: "pipeline",
		Idea: "How much faster models with unlike layers are by a plan than by interleaved 1F1B over equally many layers"}}.claims(unlike.Claim, unlike.Measure(unlikeSides())),
	Entry{Description: strategy.Description{Name: "power-network", System: "Computational power network", Step: "allocate",
		Idea: "On which data centres one large job trains, by time and money; a cluster here says nothing of data centres, so that only this claim asks"}}.
		claims(sites.Claim, sites.Measure),
}

// unlikeSides are who is compared on models with unlike layers.
func unlikeSides() unlike.Sides {
	s := unlike.Sides{Planners: []parallel.Planner{ptdp.Planner{}, autopipe.Planner{}}, Folded: func(chunks int) pipeline.Ordering {
		if chunks == 1 {
			return onefoneb.Ordering{}
		}
		return interleaved.New(interleaved.Config{Chunks: chunks})
	}}
	for chunks := 1; chunks <= 8; chunks++ {
		s.Sequences = append(s.Sequences, parallel.Sequence{Name: fmt.Sprint("1f1b of ", chunks), Order: s.Folded(chunks)})
	}
	s.Sequences = append(s.Sequences, parallel.Sequence{Name: "eager-1f1b", Order: eager.New(eager.Default())}, parallel.Sequence{Name: "zb-h1", Order: zerobubble.H1{}}, parallel.Sequence{Name: "zb-h2", Order: zerobubble.H2{}},
		parallel.Sequence{Name: "zbv", Order: zbv.V{}}, parallel.Sequence{Name: "v-half", Order: zbv.Half})
	return s
}
