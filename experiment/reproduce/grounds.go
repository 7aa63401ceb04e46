package reproduce

import (
	"fmt"

	"github.com/musterdl/muster/allocate/sites"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/measured"
	"github.com/musterdl/muster/experiment/spot"
	"github.com/musterdl/muster/experiment/straggler"
	"github.com/musterdl/muster/experiment/unlike"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Grounds is what strategies go by and none of them decides, held against what was measured.
func Grounds() []catalogue.Entry {
	planner := func(name string) parallel.Planner { return filled[parallel.Planner](parallel.PlannerPart, name, "") }
	return []catalogue.Entry{
		catalogue.Ground(strategy.Description{Name: "published-steps", System: "Published step times", Step: "pipeline",
			Idea: "How long a step of a large model takes, from its shape"}, measured.Steps, measured.MeasureSteps(folded)),
		catalogue.Ground(strategy.Description{Name: "sailor", System: "Sailor", Step: "pipeline",
			Idea: "How long a step of a plan takes, from the shape of the model"}, measured.Sailor, measured.MeasureSailor(folded(1))),
		catalogue.Ground(strategy.Description{Name: "spot", System: "Oobleck, Varuna, SWARM", Step: "pipeline",
			Idea: "What gets done of a large model on machines that come and go"}, spot.Claim, spot.Measure(planner("oobleck"), planner("varuna-morph"), folded(1))),
		catalogue.Ground(strategy.Description{Name: "straggler", System: "What-if analysis of stragglers", Step: "pipeline",
			Idea: "What slow workers cost, from a trace of their operations"}, straggler.Claim, straggler.Measure),
		catalogue.Ground(strategy.Description{Name: "unlike-layers", System: "Planning for unlike layers", Step: "pipeline",
			Idea: "How much faster models with unlike layers are by a plan than by interleaved 1F1B over equally many layers"},
			unlike.Claim, unlike.Measure(unlikeSides(planner("ptd-p"), planner("autopipe")))),
		catalogue.Ground(strategy.Description{Name: "power-network", System: "Computational power network", Step: "allocate",
			Idea: "On which data centres one large job trains, by time and money; a cluster here says nothing of data centres, so that only this claim asks"},
			sites.Claim, sites.Measure),
	}
}

// unlikeSides are who is compared on models with unlike layers.
func unlikeSides(planners ...parallel.Planner) unlike.Sides {
	s := unlike.Sides{Planners: planners, Folded: folded}
	for chunks := 1; chunks <= 8; chunks++ {
		s.Sequences = append(s.Sequences, parallel.Sequence{Name: fmt.Sprint("1f1b of ", chunks), Order: folded(chunks)})
	}
	for _, name := range []string{"eager-1f1b", "zb-h1", "zb-h2", "zbv", "v-half"} {
		s.Sequences = append(s.Sequences, parallel.Sequence{Name: name, Order: filled[pipeline.Ordering](pipeline.SequencePart, name, "")})
	}
	return s
}

// folded is interleaved 1F1B of so many chunks; of one it is 1F1B.
func folded(chunks int) pipeline.Ordering {
	if chunks == 1 {
		return filled[pipeline.Ordering](pipeline.SequencePart, "1f1b", "")
	}
	return filled[pipeline.Ordering](pipeline.SequencePart, "interleaved", fmt.Sprintf("options:\n  interleaved:\n    chunks: %d\n", chunks))
}

// filled is the strategy of a name, with options as in a composition file.
func filled[T any](part *strategy.Part, name, options string) T {
	c, err := catalogue.Read(name, []byte(part.Name+": "+name+"\n"+options))
	if err != nil {
		panic(err) // the names above are of the catalogue
	}
	f, err := c.Fill(catalogue.Env{})
	if err != nil {
		panic(err)
	}
	return strategy.In[T](f, part)
}
