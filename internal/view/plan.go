package view

import (
	"encoding/json"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/trainer/progress"
)

// Plan is the pipeline that a job runs by: what is predicted of it, and what its trainer
// measured. Of a job that runs by none there is no more than its name.
type Plan struct {
	Job      string  `json:"job"`
	Attempt  int32   `json:"attempt"`
	Schedule string  `json:"schedule,omitempty"` // the cut and the order
	Cuts     []int32 `json:"cuts,omitempty"`
	// IterationSec is predicted.
	IterationSec float64 `json:"iteration_s,omitempty"`
	// Predicted is what each rank is to do in an iteration, and when, by the layers' profile; of a
	// long plan the beginning, as much as is measured.
	Predicted [][]progress.Span `json:"predicted,omitempty"`
	Measured  *progress.Timings `json:"measured,omitempty"`
}

// Predict fills in what a plan says of these layers.
func (p *Plan) Predict(made plan.Pipeline, layers []workload.Layer) {
	p.Schedule, p.Cuts, p.IterationSec = made.Schedule, made.Cuts, made.Iteration.Seconds()
	var executed pipeline.Plan
	if json.Unmarshal(made.JSON, &executed) != nil {
		return
	}
	timing, why := executed.Timing(layers, pipeline.Params{})
	if why != "" {
		return
	}
	for r, order := range executed.Orders {
		var line []progress.Span
		for i, op := range order[:progress.Shown(len(order), len(executed.Orders))] {
			line = append(line, progress.Span{Op: op.String(), StartUs: float64(timing.Spans[r][i].Start), EndUs: float64(timing.Spans[r][i].End)})
		}
		p.Predicted = append(p.Predicted, line)
	}
}
