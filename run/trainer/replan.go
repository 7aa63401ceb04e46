package trainer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/run/trainer/progress"
)

// proposal is another plan that a worker was asked to go by. One worker that was asked is
// enough, and whoever heard of it shows what it read to the others: all look at the same bytes.
type proposal struct {
	File string `json:"file"` // its name, without its folder
	Plan []byte `json:"plan,omitempty"`
	Lack string `json:"lack,omitempty"` // why it could not be read
}

// Bounds of what is said about plans.
const (
	proposalMost = 1 << 24 // bytes; below it a float32 holds every length
	whyMost      = 1000    // bytes; a line of progress has some more
)

// replan goes by another plan from the next step on, in the same processes: layers that change
// their worker are sent with their optimiser's state. A plan that does not fit changes nothing.
// All workers call it behind the same step, and all take the plan or none.
func (r *run) replan() error {
	p, err := r.propose()
	if err != nil {
		return err
	}
	plan, why := r.fits(p)
	if why == nil && !reflect.DeepEqual(plan, r.plan) { // a worker may have heard of it later than another
		if err := r.worker.goBy(plan); err != nil {
			return err
		}
		r.plan = plan
	}
	r.answer(p, why)
	return nil
}

// propose tells all workers what one of them was asked: of several the one with the lowest rank.
func (r *run) propose() (p proposal, err error) {
	var own []byte
	if path := r.requests.plan; path != "" {
		p.File = filepath.Base(path)
		if p.Plan, err = os.ReadFile(path); err != nil {
			p.Lack = err.Error()
		}
		if own, err = json.Marshal(p); err == nil && len(own) > proposalMost {
			own, err = json.Marshal(proposal{File: p.File, Lack: fmt.Sprintf("%s has %d bytes, which is too much for a plan", path, len(p.Plan))})
		}
		if err != nil {
			return proposal{}, err
		}
		r.requests.plan = ""
	}
	lengths := make([]float32, r.place.world)
	lengths[r.place.rank] = float32(len(own))
	if err := r.worker.mesh.sum(lengths); err != nil {
		return proposal{}, err
	}
	first := 0
	for lengths[first] == 0 { // there is one, or nobody would be here
		first++
	}
	text := make([]float32, int(lengths[first]))
	if first == r.place.rank {
		for i, b := range own {
			text[i] = float32(b)
		}
	}
	if err := r.worker.mesh.sum(text); err != nil {
		return proposal{}, err
	}
	chosen := make([]byte, len(text))
	for i, x := range text {
		chosen[i] = byte(x)
	}
	p = proposal{}
	return p, json.Unmarshal(chosen, &p)
}

// fits reads a plan that workers under way were given, or says why they cannot go by it. They
// are connected for as many in a row, and for as many slices, as the attempt began with.
func (r *run) fits(p proposal) (*pipeline.Plan, error) {
	if p.Lack != "" {
		return nil, fmt.Errorf("%s", p.Lack)
	}
	if r.plan == nil {
		return nil, fmt.Errorf("each worker of this attempt has the whole model: expected an attempt that began with a plan in MUSTER_PLAN")
	}
	told, err := shape.ReadTold(p.Plan)
	if err == nil {
		same := r.worker.config
		err = same.build(told, func(string) bool { return true })
	}
	if err == nil {
		err = checkPlan(told, r.worker.config)
	}
	if err != nil {
		return nil, err
	}
	plan := &told.Plan
	if row, slices := len(plan.Orders), int(max(1, plan.Tensor)); row != r.place.pipe || slices != r.place.tensor {
		return nil, fmt.Errorf("it is for %d workers in a row with each layer on %d: expected %d and %d, as this attempt began", row, slices, r.place.pipe, r.place.tensor)
	}
	if least := r.worker.mesh.data.world * int(plan.Microbatches); least > r.worker.config.Batch {
		return nil, fmt.Errorf("a batch of %d sequences is too small for it: expected at least %d, one for each microbatch of %d pipelines", r.worker.config.Batch, least, r.worker.mesh.data.world)
	}
	return plan, nil
}

// answer tells who asked what came of it.
func (r *run) answer(p proposal, why error) {
	if r.place.rank != 0 {
		return
	}
	e := progress.Event{Kind: progress.Planned, Step: int64(r.worker.done), File: p.File}
	if why != nil {
		e.Why = fmt.Sprintf("%.*s", whyMost, why)
		r.logf("the plan %s is not taken: %s", p.File, why)
	}
	r.report.Write(e)
}

// goBy has the worker go by another plan with as many workers. It has its old stages beside the new
// ones until a step is made by that plan, so that a loss in between loses no step: before that
// somebody may not know yet that all have got their layers.
func (w *worker) goBy(plan *pipeline.Plan) error {
	next := *w
	next.plan, next.stages, next.held = plan, nil, nil
	then := divided(emptyStage, next)
	for i := range w.config.depth() {
		from, to, here := w.workerOf(i), then.workerOf(i), w.mesh.pipe.rank
		if from == to && here != from {
			continue
		}
		x := make([]float32, 3*newLayer(w.config.Shape, i, w.mesh.tensor.world).size())
		if here == from {
			w.layerState(i, func(own, part []float32) { copy(part, own) }, x)
		}
		if err := w.mesh.pipe.carry(tag{kindLayer, uint32(i)}, x, from, to); err != nil {
			return err
		}
		if here == to {
			then.layerState(i, func(own, part []float32) { copy(own, part) }, x)
		}
	}
	if err := w.mesh.barrier(); err != nil {
		return err
	}
	was := *w
	*w, w.was = *then, &was
	return nil
}

// workerOf is which worker of a pipeline has a layer.
func (w *worker) workerOf(layer int) int {
	schedule := w.plan.Schedule()
	return int(schedule.Rank(w.stageOf(layer), 0))
}

// stageOf is the stage that a layer is in.
func (w *worker) stageOf(layer int) (stage int32) {
	for _, cut := range w.plan.Cuts {
		if int(cut) <= layer {
			stage++
		}
	}
	return stage
}

// layerState shows a layer here and x to each other: parameters, first and second moments.
func (w *worker) layerState(layer int, each func(own, part []float32), x []float32) {
	for k, stage := range w.held {
		if s := w.stages[k]; stage == w.stageOf(layer) {
			for j, flat := range [][]float32{s.w, s.m, s.v} {
				own := s.layer(flat, layer-s.from)
				each(own, x[j*len(own):(j+1)*len(own)])
			}
		}
	}
}
