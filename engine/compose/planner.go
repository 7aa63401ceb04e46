package compose

import (
	"encoding/json"
	"fmt"

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

	made map[key]*made
	like map[string]*made // by what was asked for: each job has a profile of its own
}

// key is what a plan depends on: a profile, and how fast the workers' devices are where they
// are unlike.
type key struct {
	profile int32
	speeds  string
}

type made struct {
	plan plan.Pipeline
	null unit.Duration
	ok   bool
}

var _ Planner = (*Pipelines)(nil)

// Plan cuts and orders the job's layers for the stages it asked for.
func (p *Pipelines) Plan(v plan.View, job plan.JobID, on []plan.Slot) (plan.Pipeline, unit.Duration, bool) {
	id := v.Job(job).Profile
	speeds := Speeds(v, on, v.Profile(id).Stages)
	k := key{profile: id}
	if speeds != nil {
		k.speeds = fmt.Sprint(speeds)
	}
	m, seen := p.made[k]
	if !seen {
		m = p.once(Request(v.Profile(id)), speeds)
		p.made[k] = m
	}
	return m.plan, m.null, m.ok
}

// once makes the plan of a request, or finds that of another job that asked for the same.
func (p *Pipelines) once(request workload.Pipeline, speeds []float64) *made {
	if p.made == nil {
		p.made, p.like = map[key]*made{}, map[string]*made{}
	}
	asked := fmt.Sprint(request, speeds)
	m, seen := p.like[asked]
	if !seen {
		one := p.make(request, pipeline.Params{Speeds: speeds})
		m = &one
		p.like[asked] = m
	}
	return m
}

// Speeds are those of the workers' devices where they are unlike, and each worker is a stage. A
// plan for like devices is the same on any kind of them: only its seconds differ, which the run's
// own rate says. So it is made once for all, and kept in the journal once.
func Speeds(v plan.View, on []plan.Slot, stages int32) (speeds []float64) {
	for i := range on {
		speed := v.Cluster().Models[v.Node(on[i].Node).Model].Speed
		for range on[i].Workers {
			speeds = append(speeds, speed)
		}
	}
	if len(speeds) != int(stages) {
		return nil
	}
	return pipeline.Unlike(speeds)
}

func (p *Pipelines) make(request workload.Pipeline, on pipeline.Params) made {
	name := p.Name
	null, why := pipeline.Build(p.NullCut, p.NullSequence, request, on)
	if why != "" {
		null = pipeline.Plan{}
	}
	best, why := p.best(request, on)
	if why != "" { // a job that asks for stages has them: then the order is that without a strategy
		name = plan.Unplanned(name, string(why))
		if best, why = pipeline.Build(p.Cut, p.NullSequence, request, on); why != "" {
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

// best is the plan of the strategies. A planner is asked for one pipeline with a rank for each
// worker: more a run of this many workers could not carry out.
func (p *Pipelines) best(request workload.Pipeline, on pipeline.Params) (pipeline.Plan, pipeline.Why) {
	if p.Spread == nil {
		return pipeline.Build(p.Cut, p.Sequence, request, on)
	}
	x := parallel.NewSimulator(parallel.Of(request), parallel.Ranks(int(request.Stages), on.Speeds))
	all, why := p.Spread.Plans(x, parallel.Limits{Stages: true, Sequences: []parallel.Sequence{{Name: p.Name, Order: p.Sequence}}})
	if why != "" {
		return pipeline.Plan{}, why
	}
	best := all[0].Staged()
	best.Tensor = request.Tensor
	return best, ""
}

// Request turns a stored profile back into what the job asked.
func Request(p plan.Profile) workload.Pipeline {
	r := workload.Pipeline{Stages: p.Stages, Microbatches: p.Microbatches, Tensor: p.Tensor}
	for _, l := range p.Layers {
		r.Layers = append(r.Layers, workload.Layer{Forward: l.Forward, Backward: l.Backward,
			ParamKiB: l.ParamKiB, OutputKiB: l.OutputKiB, ActivationKiB: l.ActivationKiB})
	}
	return r
}
