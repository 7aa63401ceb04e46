package trainer

import (
	"fmt"
	"math"

	"github.com/musterdl/muster/pipeline"
)

// worker computes this process's part of every step.
type worker struct {
	config Config
	text   []byte
	mesh   *mesh
	stages []*stage       // a whole model, or those that the plan gives this worker
	held   []int32        // their numbers
	plan   *pipeline.Plan // nil: each worker has the whole model
	clock  *clock         // of its passes; nil without a plan
	asked  int            // the batch that this worker was asked for; 0 is none
	called bool           // this worker was asked to go by another plan
	done   int            // the step that the stages are behind
	// summed says that the gradients of the step after done are summed up here: if a peer fails now,
	// this worker can still make that step by itself.
	summed bool
	// was is this worker by the plan before, as long as another may have to go on by that one.
	was *worker
}

// newWorker returns a worker whose stages have their first parameters.
func newWorker(c Config, text []byte, plan *pipeline.Plan, m *mesh) *worker {
	return divided(newStage, worker{config: c, text: text, plan: plan, mesh: m})
}

// divided is the worker with the stages that its plan gives it, as make makes them.
func divided(make func(c Config, from, to int, tensor *ring) *stage, w worker) *worker {
	c, m := w.config, w.mesh
	if w.plan == nil {
		w.stages, w.held = []*stage{make(c, 0, c.depth(), m.tensor)}, []int32{0}
		return &w
	}
	was := w.clock
	if w.clock = newClock(w.plan, m, c.TimingsEvery); was != nil {
		w.clock.probe = was.probe // whose device is the same
	}
	schedule := w.plan.Schedule()
	for _, chunk := range schedule.Chunks(m.pipe.rank) {
		from, to := layersOf(w.plan, int(chunk.Stage), c.depth())
		w.stages, w.held = append(w.stages, make(c, from, to, m.tensor)), append(w.held, chunk.Stage)
	}
	return &w
}

// outcome is what all workers know after a step.
type outcome struct {
	loss       float32
	save, stop bool
	plan       bool // somebody was asked to go by another plan
}

// step makes training step number `step`, counted from 1. The requests of this
// worker are shared with all, so that the answer is the same everywhere.
func (w *worker) step(step int, save, stop bool) (outcome, error) {
	s := w.stages[0] // whose extras count for all
	for _, other := range w.stages {
		clear(other.shared)
	}
	s.extras()[extraSave] = vote(save)
	s.extras()[extraStop] = vote(stop)
	s.extras()[extraAsked], s.extras()[extraBatch] = vote(w.asked > 0), float32(w.asked)
	s.extras()[extraPlan] = vote(w.called)
	w.asked, w.called = 0, false
	batch := share(draw(w.text, w.config, step), w.mesh.data.rank, w.mesh.data.world)
	weight := 1 / float32(w.config.Batch*w.config.Seq)
	if w.plan == nil {
		m := s.begin(batch, weight)
		s.backward(m, s.forward(m, nil))
		s.finish(m)
	} else if err := w.pipeline(batch, weight); err != nil {
		return outcome{}, err
	}
	return w.settleStep()
}

// settleStep makes the step whose gradients are there, with all workers or none.
func (w *worker) settleStep() (outcome, error) {
	if err := w.exchange(); err != nil {
		return outcome{}, err
	}
	x := w.stages[0].extras()
	o := outcome{loss: x[extraLoss], save: x[extraSave] > 0, stop: x[extraStop] > 0, plan: x[extraPlan] > 0}
	if !finite(o.loss) {
		return outcome{}, fmt.Errorf("the loss of step %d is %g: try a smaller lr", w.done+1, o.loss)
	}
	if err := w.agree(); err != nil {
		return outcome{}, err
	}
	w.update()
	if x[extraAsked] > 0 {
		w.config.Batch = int(x[extraBatch] / x[extraAsked])
	}
	return o, nil
}

// exchange sums each stage's gradients over those who have it, and the extras over all.
func (w *worker) exchange() error {
	s := w.stages[0]
	for _, other := range w.stages[1:] {
		s.extras()[extraLoss] += other.extras()[extraLoss]
		if err := w.mesh.data.allReduce(other.g); err != nil {
			return err
		}
	}
	if err := w.mesh.data.allReduce(s.shared); err != nil {
		return err
	}
	// Before the others can know of it, or they could be behind a step that this worker thinks it
	// cannot make. A step without a loss is none: whoever has the loss does not keep it.
	w.summed = finite(s.extras()[extraLoss])
	if err := w.mesh.pipe.allReduce(s.extras()); err != nil {
		return err
	}
	return w.mesh.tensor.allReduce(s.extras())
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }

// agree returns when all workers have the gradients of this step, so that nobody is behind a
// step that somebody else who lives cannot make. Whoever is through with exchange knows that of
// its own pipeline and slices: what is left is to hear it of the others.
func (w *worker) agree() error { return w.mesh.data.allReduce(make([]float32, 1)) }

// update makes the step whose gradients are summed up.
func (w *worker) update() {
	w.done++
	for _, s := range w.stages {
		s.update(w.done, w.config.LR)
	}
	w.summed, w.was = false, nil
}

// vote is how a yes is counted in a sum.
func vote(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// division is into how many stages the model is cut.
func (w *worker) division() int {
	if w.plan == nil {
		return 1
	}
	return int(w.plan.Stages)
}
