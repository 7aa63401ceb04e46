package world

import (
	"encoding/json"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

// planned is how near a pipeline plan comes to the ideal of its stages always
// busy: the truth about a plan is its own iteration run through the task graph on
// the job's layers. A job's true duration is meant for the ideal.
func (w *World) planned(v plan.View, job plan.JobID, id int32) float64 {
	if rate, seen := w.plans[id]; seen {
		return rate
	}
	if w.plans == nil {
		w.plans = map[int32]float64{}
	}
	w.plans[id] = efficiency(v.Profile(v.Job(job).Profile), v.Pipeline(id))
	return w.plans[id]
}

func efficiency(profile plan.Profile, made plan.Pipeline) float64 {
	var p pipeline.Plan
	if json.Unmarshal(made.JSON, &p) != nil {
		return 1
	}
	var layers []workload.Layer
	var work unit.Duration
	for _, l := range profile.Layers {
		layers = append(layers, workload.Layer{Forward: l.Forward, Backward: l.Backward,
			ParamKiB: l.ParamKiB, OutputKiB: l.OutputKiB, ActivationKiB: l.ActivationKiB})
		work += l.Forward + l.Backward
	}
	run, why := pipeline.Simulate(layers, p, pipeline.Params{})
	if why != "" || run.Iteration <= 0 {
		return 1
	}
	ideal := float64(work) * float64(profile.Microbatches) / float64(max(1, profile.Stages))
	return ideal / float64(run.Iteration)
}
