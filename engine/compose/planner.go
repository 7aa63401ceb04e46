package compose

import (
	"encoding/json"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
)

// Pipelines is a Planner made of a partitioner and an ordering, with the null pair
// to compare with. Plans are made once per layer profile.
type Pipelines struct {
	Cut          pipeline.Partitioner
	Sequence     pipeline.Ordering
	NullCut      pipeline.Partitioner
	NullSequence pipeline.Ordering
	Name         string // of the pair, for the plan
	// Spread, where there is one, takes the place of the cut.
	Spread parallel.Planner

	made map[int32]made
}

type made struct {
	plan plan.Pipeline
	null unit.Duration
	ok   bool
}

var _ Planner = (*Pipelines)(nil)

// Plan cuts and orders the job's layers for the stages it asked for.
func (p *Pipelines) Plan(v plan.View, job plan.JobID) (plan.Pipeline, unit.Duration, bool) {
	id := v.Job(job).Profile
	if m, seen := p.made[id]; seen {
		return m.plan, m.null, m.ok
	}
	if p.made == nil {
		p.made = map[int32]made{}
	}
	p.made[id] = p.make(v.Profile(id))
	return p.made[id].plan, p.made[id].null, p.made[id].ok
}

func (p *Pipelines) make(profile plan.Profile) made {
	request, name := Request(profile), p.Name
	null, why := pipeline.Build(p.NullCut, p.NullSequence, request, pipeline.Params{})
	if why != "" {
		null = pipeline.Plan{}
	}
	best, why := p.best(request)
	if why != "" { // a job that asks for stages has them: then the order is that without a strategy
		name += ", which has no plan: " + string(why)
		if best, why = pipeline.Build(p.Cut, p.NullSequence, request, pipeline.Params{}); why != "" {
			best = null
		}
	}
	if best.Stages == 0 {
		return made{}
	}
	m := made{ok: true, null: null.Iteration, plan: plan.Pipeline{Cuts: best.Cuts, Schedule: name, Iteration: best.Iteration}}
	encoded, err := json.Marshal(best)
	if err != nil {
		return made{} // a plan is numbers and short texts; nothing of it can fail
	}
	m.plan.JSON = encoded
	return m
}

// best is the plan of the strategies.
func (p *Pipelines) best(request workload.Pipeline) (pipeline.Plan, pipeline.Why) {
	if p.Spread == nil {
		return pipeline.Build(p.Cut, p.Sequence, request, pipeline.Params{})
	}
	x := parallel.NewSimulator(parallel.Of(request), parallel.Even(parallel.Device{TFlops: 1}, int(request.Stages), 1, 0))
	all, why := p.Spread.Plans(x, parallel.Limits{Stages: true, Sequences: []parallel.Sequence{{Name: p.Name, Order: p.Sequence}}})
	if why != "" {
		return pipeline.Plan{}, why
	}
	return all[0].Staged(), ""
}

// Request turns a stored profile back into what the job asked.
func Request(p plan.Profile) workload.Pipeline {
	r := workload.Pipeline{Stages: p.Stages, Microbatches: p.Microbatches}
	for _, l := range p.Layers {
		r.Layers = append(r.Layers, workload.Layer{Forward: l.Forward, Backward: l.Backward,
			ParamKiB: l.ParamKiB, OutputKiB: l.OutputKiB, ActivationKiB: l.ActivationKiB})
	}
	return r
}
