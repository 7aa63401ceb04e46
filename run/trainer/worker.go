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
}

func newWorker(c Config, text []byte, plan *pipeline.Plan, m *mesh) *worker {
	w := &worker{config: c, text: text, mesh: m, plan: plan}
	if plan == nil {
		w.stages, w.held = []*stage{newStage(c, 0, c.depth(), m.tensor)}, []int32{0}
		return w
	}
	w.clock = newClock(plan, m, c.TimingsEvery)
	schedule := plan.Schedule()
	for _, chunk := range schedule.Chunks(m.pipe.rank) {
		from, to := layersOf(plan, int(chunk.Stage), c.depth())
		w.stages, w.held = append(w.stages, newStage(c, from, to, m.tensor)), append(w.held, chunk.Stage)
	}
	return w
}

// outcome is what all workers know after a step.
type outcome struct {
	loss       float32
	save, stop bool
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
	w.asked = 0
	batch := share(draw(w.text, w.config, step), w.mesh.data.rank, w.mesh.data.world)
	weight := 1 / float32(w.config.Batch*w.config.Seq)
	if w.plan == nil {
		m := s.begin(batch, weight)
		s.backward(m, s.forward(m, nil))
		s.finish(m)
	} else if err := w.pipeline(batch, weight); err != nil {
		return outcome{}, err
	}
	if err := w.exchange(); err != nil {
		return outcome{}, err
	}
	x := s.extras()
	o := outcome{loss: x[extraLoss], save: x[extraSave] > 0, stop: x[extraStop] > 0}
	if math.IsNaN(float64(o.loss)) || math.IsInf(float64(o.loss), 0) {
		return outcome{}, fmt.Errorf("the loss of step %d is %g: try a smaller lr", step, o.loss)
	}
	for _, s := range w.stages {
		s.update(step, w.config.LR)
	}
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
	for _, r := range []struct {
		*ring
		x []float32
	}{{w.mesh.data, s.shared}, {w.mesh.pipe, s.extras()}, {w.mesh.tensor, s.extras()}} {
		if err := r.allReduce(r.x); err != nil {
			return err
		}
	}
	return nil
}

// vote is how a yes is counted in a sum.
func vote(b bool) float32 {
	if b {
		return 1
	}
	return 0
}
