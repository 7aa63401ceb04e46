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
	ring   *ring
	stages []*stage       // a whole model, or those that the plan gives this worker
	held   []int32        // their numbers
	plan   *pipeline.Plan // nil: data parallel
	asked  int            // the batch that this worker was asked for; 0 is none
}

func newWorker(c Config, text []byte, plan *pipeline.Plan, r *ring) *worker {
	w := &worker{config: c, text: text, ring: r, plan: plan}
	if plan == nil {
		w.stages, w.held = []*stage{newStage(c, 0, c.depth())}, []int32{0}
		return w
	}
	schedule := plan.Schedule()
	for _, chunk := range schedule.Chunks(r.rank) {
		from, to := layersOf(plan, int(chunk.Stage), c.depth())
		w.stages, w.held = append(w.stages, newStage(c, from, to)), append(w.held, chunk.Stage)
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
	batch := draw(w.text, w.config, step)
	weight := 1 / float32(w.config.Batch*w.config.Seq)
	if w.plan == nil {
		m := s.begin(share(batch, w.ring.rank, w.ring.world), weight)
		s.backward(m, s.forward(m, nil))
		s.finish(m)
		if err := w.ring.allReduce(s.shared); err != nil {
			return outcome{}, err
		}
	} else {
		if err := w.pipeline(batch, weight); err != nil {
			return outcome{}, err
		}
		for _, other := range w.stages[1:] {
			s.extras()[extraLoss] += other.extras()[extraLoss]
		}
		if err := w.ring.allReduce(s.extras()); err != nil {
			return outcome{}, err
		}
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

// vote is how a yes is counted in a sum.
func vote(b bool) float32 {
	if b {
		return 1
	}
	return 0
}
