package world

import (
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
	layers := w.truth[job].layers
	profile := v.Profile(v.Job(job).Profile)
	if layers == nil { // nobody knows better
		for _, l := range profile.Layers {
			layers = append(layers, workload.Layer{Forward: l.Forward, Backward: l.Backward,
				ParamKiB: l.ParamKiB, OutputKiB: l.OutputKiB, ActivationKiB: l.ActivationKiB})
		}
	}
	var p pipeline.Plan
	w.plans[id] = 1
	if json.Unmarshal(v.Pipeline(id).JSON, &p) == nil {
		w.plans[id] = efficiency(layers, p, profile.Microbatches, profile.Stages)
	}
	return w.plans[id]
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
