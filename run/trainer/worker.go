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
	stage  *stage
	plan   *pipeline.Plan // nil: data parallel
	asked  int            // the batch that this worker was asked for; 0 is none
}

func newWorker(c Config, text []byte, plan *pipeline.Plan, r *ring) *worker {
	w := &worker{config: c, text: text, ring: r, plan: plan}
	from, to := 0, c.depth()
	if plan != nil {
		from, to = layersOf(plan, r.rank, c.depth())
	}
	w.stage = newStage(c, from, to)
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
	s := w.stage
	clear(s.shared)
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
		if err := w.ring.allReduce(s.extras()); err != nil {
			return outcome{}, err
		}
	}
	x := s.extras()
	o := outcome{loss: x[extraLoss], save: x[extraSave] > 0, stop: x[extraStop] > 0}
	if math.IsNaN(float64(o.loss)) || math.IsInf(float64(o.loss), 0) {
		return outcome{}, fmt.Errorf("the loss of step %d is %g: try a smaller lr", step, o.loss)
	}
	s.update(step, w.config.LR)
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

// pipeline executes this stage's order.
func (w *worker) pipeline(batch []sequence, weight float32) error {
	s, r := w.stage, w.ring
	running := make([]*microbatch, w.plan.Microbatches)
	receive := func(m *microbatch, from *link, k kind, number int) ([]float32, error) {
		x := m.arena.take(m.rows() * w.config.Dim)
		return x, from.recv(tag{k, uint32(number)}, x)
	}
	last := r.rank == r.world-1
	for _, o := range w.plan.Orders[r.rank] {
		var x []float32
		var err error
		n := int(o.Micro)
		if o.Kind == pipeline.Forward {
			m := s.begin(share(batch, n, int(w.plan.Microbatches)), weight)
			running[n] = m
			if r.rank > 0 {
				if x, err = receive(m, r.prev, kindForward, n); err != nil {
					return err
				}
			}
			if y := s.forward(m, x); !last {
				r.next.send(tag{kindForward, uint32(n)}, y)
			}
			continue
		}
		m := running[n]
		if !last {
			if x, err = receive(m, r.next, kindBackward, n); err != nil {
				return err
			}
		}
		if dx := s.backward(m, x); r.rank > 0 {
			r.prev.send(tag{kindBackward, uint32(n)}, dx)
		}
		s.finish(m)
	}
	return nil
}
