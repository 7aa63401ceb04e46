package world

import (
	"cmp"
	"encoding/json"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
)

// planned is how near a pipeline plan comes to the ideal of its stages always
// busy: the truth about a plan is its own iteration run through the task graph on the
// job's true layers, of which the planner has only what was measured. A job's true
// duration is meant for the ideal.
func (w *World) planned(v plan.View, job plan.JobID, id int32) float64 {
	if v.Pipeline(id).JSON == nil {
		return 1 // it has no stages, and is only brought in groups
	}
	if rate, seen := w.plans[id]; seen {
		return rate
	}
	if w.plans == nil {
		w.plans = map[int32]float64{}
	}
	var p pipeline.Plan
	w.plans[id] = 1
	if json.Unmarshal(v.Pipeline(id).JSON, &p) == nil {
		profile := v.Profile(v.Job(job).Profile)
		w.plans[id] = efficiency(w.Layers(v, job), p, profile.Microbatches, profile.Stages)
	}
	return w.plans[id]
}

// Layers are what the layers of a job truly are: what nobody knows better is as believed.
func (w *World) Layers(v plan.View, job plan.JobID) []workload.Layer {
	believed, known := v.ProfileOf(job).Layers, w.truth[job].layers
	all := make([]workload.Layer, len(believed))
	for i, l := range believed {
		var t workload.Layer
		if i < len(known) {
			t = known[i]
		}
		all[i] = workload.Layer{Forward: cmp.Or(t.Forward, l.Forward), Backward: cmp.Or(t.Backward, l.Backward), ParamKiB: cmp.Or(t.ParamKiB, l.ParamKiB),
			OutputKiB: cmp.Or(t.OutputKiB, l.OutputKiB), ActivationKiB: cmp.Or(t.ActivationKiB, l.ActivationKiB)}
	}
	return all
}

func efficiency(layers []workload.Layer, p pipeline.Plan, microbatches, stages int32) float64 {
	var work unit.Duration
	for _, l := range layers {
		work += l.Forward + l.Backward
	}
	run, why := pipeline.Simulate(layers, p, pipeline.Params{})
	if why != "" || run.Iteration <= 0 {
		return 1
	}
	ideal := float64(work) * float64(microbatches) / float64(max(1, stages))
	return ideal / float64(run.Iteration)
}
