package view

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/engine/pipelines"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/trainer/progress"
)

// Pipeline is the plan that a job runs by, in short.
type Pipeline struct {
	Schedule string `json:"schedule,omitempty"` // the cut and the order, or how a menu names the plan
	// IterationSec is predicted, NullIterationSec is that of equal layers and GPipe. Of a plan of a menu it
	// is the whole step, with the exchange of gradients and the optimiser, of which PassesSec are the passes.
	IterationSec     float64 `json:"iteration_s,omitempty"`
	PassesSec        float64 `json:"passes_s,omitempty"`
	NullIterationSec float64 `json:"null_iteration_s,omitempty"`
	// MeasuredSec is how long the passes of the step took that was measured last.
	MeasuredSec float64 `json:"measured_s,omitempty"`
}

// Measure takes over what a job measured. A timeline that is cut says nothing of its step.
func (p *Pipeline) Measure(t *progress.Timings) { p.MeasuredSec = t.StepUs() / 1e6 }

// text says it in a line.
func (p *Pipeline) text() string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("%s, a step takes %s as predicted", p.Schedule, seconds(p.IterationSec))
	if p.MeasuredSec > 0 {
		text += ", its passes " + seconds(p.MeasuredSec) + " as measured"
	}
	if p.NullIterationSec > 0 {
		text += fmt.Sprintf(" (%s with equal layers and GPipe)", seconds(p.NullIterationSec))
	}
	return text
}

// seconds writes the time of a step, which may be less than a millisecond.
func seconds(sec float64) string { return unit.Duration(math.Round(sec * 1e6)).String() }

// Plan is the pipeline that a job runs by: what is predicted of it, and what its trainer
// measured. Of a job that runs by none it says why.
type Plan struct {
	Job     string `json:"job"`
	Attempt int32  `json:"attempt"`
	Pipeline
	Words string  `json:"words,omitempty"` // why there is no plan
	Cuts  []int32 `json:"cuts,omitempty"`
	// Predicted is what each rank is to do in an iteration, and when, by the layers' profile; of a
	// long plan the beginning, as much as is measured. KeptMiB is what each rank keeps at most of
	// activations and of old versions of weights, which its order decides.
	Predicted [][]progress.Span `json:"predicted,omitempty"`
	KeptMiB   []float64         `json:"kept_mib,omitempty"`
	Measured  *progress.Timings `json:"measured,omitempty"`
	// Menu are the plans among which the job's size and devices choose.
	Menu []PlanOffer `json:"menu,omitempty"`
	// Reacted is there once its run had to go on otherwise.
	*Reacted

	offer *offered // by which it runs, where a menu has it; nil is none
}

// offered is what an offer's plan was made for, and what is kept of it.
type offered struct {
	job           workload.Job
	kind, workers int32
	shape         string
}

// PlanOffer is a plan of a job's menu.
type PlanOffer struct {
	Schedule string  `json:"schedule"`
	Model    string  `json:"model,omitempty"` // of the devices; empty is the reference device
	Workers  int32   `json:"workers"`
	Nodes    int32   `json:"nodes"`
	StepSec  float64 `json:"step_s"`           // predicted
	Chosen   bool    `json:"chosen,omitempty"` // the job runs by it
}

// made is the plan of a job's present run; false where it has none.
func made(v plan.View, id plan.JobID) (plan.Pipeline, bool) {
	run := v.Job(id).Run
	if run == plan.None || v.Run(run).Terms.Plan.ID == plan.None {
		return plan.Pipeline{}, false
	}
	p := v.Pipeline(v.Run(run).Terms.Plan.ID)
	return p, p.Schedule != "" // one without is of how memory is brought in
}

// pipelineOf tells a job's plan in short, with what the dossier says that it was compared to.
func pipelineOf(v plan.View, info plane.JobInfo, id plan.JobID) *Pipeline {
	p, ok := made(v, id)
	if !ok {
		return nil
	}
	out := Pipeline{Schedule: p.Title(), IterationSec: p.Iteration.Seconds()}
	for _, e := range info.Dossier {
		for _, n := range e.Notes {
			if n.Step == plan.Pipelining && n.Chosen == int64(v.Run(v.Job(id).Run).Terms.Plan.ID) {
				out.NullIterationSec = unit.Duration(n.Lost).Seconds()
			}
		}
	}
	return &out
}

// PlanOf tells by which plan a job runs, what is predicted of it, and what else its menu has.
func PlanOf(v plan.View, info plane.JobInfo, id plan.JobID) Plan {
	j := v.Job(id)
	out := Plan{Job: v.Name(id), Attempt: j.Attempt, Reacted: reactedOf(v, id)}
	p, ok := made(v, id)
	for _, o := range v.Menu(id) {
		if o.Plan.Name == "" {
			continue
		}
		offer := PlanOffer{Schedule: o.Plan.Name, Workers: o.Workers, Nodes: o.Nodes, StepSec: o.Plan.Step.Seconds(),
			Chosen: ok && o.Plan.Name == p.Schedule && o.Plan.Shape == string(p.JSON) && o.Plan.Step == p.Iteration}
		if o.Model != plan.None {
			offer.Model = v.Cluster().Models[o.Model].Name
		}
		out.Menu = append(out.Menu, offer)
	}
	switch {
	case ok:
		out.Pipeline, out.Cuts = *pipelineOf(v, info, id), slices.Clone(p.Cuts)
		on := workers(v, j.Run)
		if info.Spec.Pipeline.Model != "" && len(on) > 0 {
			out.offer = &offered{*info.Spec, v.Node(on[0].Node).Model, int32(len(on)), string(p.JSON)}
			break
		}
		request := pipelines.Request(*v.ProfileOf(id))
		for l := range p.Layers { // what was measured of its run in the place of its profile
			layer := &request.Layers[l]
			both := max(1, layer.Forward+layer.Backward)
			layer.Forward, layer.Backward = layer.Forward*p.Layers[l]/both, layer.Backward*p.Layers[l]/both
		}
		params := pipeline.Params{}
		if devices, speeds := pipelines.Placed(v, on, request.Stages); devices != nil {
			params.Speeds, params.Links = speeds, devices.Links()
		}
		out.predict(p.JSON, request.Layers, params)
	case v.ProfileOf(id).Stages == 0 && len(out.Menu) == 0:
		out.Words = "it has no plan: it asks for no pipeline"
	case j.Phase.Over():
		out.Words = "it has ended: a plan is told while its job runs"
	case j.Run == plan.None:
		out.Words = "it has no plan yet: that is chosen with its devices"
	default:
		out.Words = "it runs by no plan: the strategy made none for its devices"
	}
	return out
}

// workers are where those of a run stand, in their order: each has as many grants, of one node.
func workers(v plan.View, run plan.RunID) (on []plan.Slot) {
	var nodes []plan.NodeID
	v.GrantsOf(run, func(g plan.Grant) { nodes = append(nodes, g.Node) })
	n := int(v.Run(run).Workers)
	for w := 0; w < n && n <= len(nodes); w++ {
		on = append(on, plan.Slot{Node: nodes[w*len(nodes)/n], Workers: 1})
	}
	return on
}

// Read makes the plan of a job's offer again: for its job, so many workers of a kind, and the shape that
// is kept of it.
type Read func(j *workload.Job, kind, workers int32, shape string) (*parallel.Candidate, parallel.Why)

// Offered fills in what the plan of an offer says, which has to be made again from its shape: that may
// take long, so it is not for inside a query.
func (p *Plan) Offered(read Read) {
	if p.offer == nil || read == nil {
		return
	}
	c, why := read(&p.offer.job, p.offer.kind, p.offer.workers, p.offer.shape)
	if why != "" {
		p.Words = "its passes are not told: " + string(why)
		return
	}
	part := c.Result.Parts[0]
	p.Cuts, p.PassesSec = c.Plan.Pipelines[0].Cuts, part.Timing.Makespan.Seconds()
	p.draw(part.Schedule.Orders, &part.Timing)
}

// predict fills in what a plan says of these layers on such devices.
func (p *Plan) predict(text []byte, layers []workload.Layer, on pipeline.Params) {
	var executed pipeline.Plan
	if json.Unmarshal(text, &executed) != nil {
		return
	}
	timing, why := executed.Timing(layers, on)
	if why == "" {
		p.draw(executed.Orders, &timing)
	}
}

// draw fills in when the passes of some orders are, as much of each as is measured.
func (p *Plan) draw(orders [][]pipeline.Op, timing *pipeline.Timing) {
	for r, order := range orders {
		var line []progress.Span
		for i, op := range order[:progress.Shown(len(order), len(orders))] {
			line = append(line, progress.Span{Op: op.String(), StartUs: float64(timing.Spans[r][i].Start), EndUs: float64(timing.Spans[r][i].End)})
		}
		p.Predicted = append(p.Predicted, line)
		p.KeptMiB = append(p.KeptMiB, float64(timing.Peak[r].Total()-timing.Peak[r].ParamKiB)/1024)
	}
}
