package trainer

import (
	"runtime"
	"slices"
	"time"

	"github.com/musterdl/muster/pipeline"
)

// passes are one worker's part of a step that goes by a plan.
type passes struct {
	*worker
	schedule pipeline.Schedule
	batch    []sequence
	weight   float32
	running  map[[2]int32]*microbatch // by stage and number
	// here is what one stage of this worker has for another, in the order in which it was made.
	here map[tag][][]float32
	// again are the inputs of those that are to be computed again; all else is let go of.
	again map[[2]int32][]float32
}

// pipeline executes this worker's order. Two passes that the plan has at once come one after
// the other.
func (w *worker) pipeline(batch []sequence, weight float32) error {
	p := &passes{worker: w, schedule: w.plan.Schedule(), batch: batch, weight: weight, running: map[[2]int32]*microbatch{}, here: map[tag][][]float32{}, again: map[[2]int32][]float32{}}
	order := w.plan.Orders[w.mesh.pipe.rank]
	for _, op := range order {
		if op.Kind == pipeline.Recompute {
			p.again[[2]int32{op.Stage, op.Micro}] = nil
		}
	}
	w.clock.steps++
	w.clock.probe.between(len(order))
	if w.clock.due() { // all begin at once, or the spans of several workers would not fit together
		if err := w.mesh.barrier(); err != nil {
			return err
		}
	}
	began := time.Now()
	for i, op := range order {
		if err := p.do(i, op, began); err != nil {
			return err
		}
	}
	return nil
}

// do executes one pass: it waits for what the pass needs of another stage, and hands on what
// that one needs of it.
func (p *passes) do(i int, op pipeline.Op, began time.Time) error {
	s, at := p.stages[slices.Index(p.held, op.Stage)], [2]int32{op.Stage, op.Micro}
	m := p.running[at]
	switch op.Kind {
	case pipeline.Forward, pipeline.Recompute:
		m = p.begin(s, at, 0, 1)
	case pipeline.FirstHalf:
		m = p.begin(s, at, 0, 2)
	case pipeline.SecondHalf:
		first := m
		m = p.begin(s, at, 1, 2)
		m.first = first
	}
	x, err := p.await(op, m)
	if err != nil {
		return err
	}
	start, waited, busy := time.Since(began), m.waiting(), p.clock.probe.start()
	y := p.compute(s, m, op, x)
	end := time.Since(began)
	p.clock.probe.took(busy, end-start-(m.waiting()-waited))
	p.clock.took(i, op, start, end)
	if m.err != nil {
		return m.err
	}
	p.hand(op, y)
	_, again := p.again[at]
	if op.Kind == pipeline.Forward && again {
		p.again[at] = slices.Clone(x)
	}
	if op.Kind == pipeline.Backward || op.Kind == pipeline.Weight || op.Kind == pipeline.Forward && again {
		if m.first != nil {
			s.finish(m.first)
		}
		s.finish(m)
	}
	return nil
}

// compute is what of a pass takes time.
func (p *passes) compute(s *stage, m *microbatch, op pipeline.Op, x []float32) (y []float32) {
	switch op.Kind {
	case pipeline.Forward, pipeline.FirstHalf, pipeline.SecondHalf:
		return s.forward(m, x)
	case pipeline.Recompute:
		s.compute(m, p.again[[2]int32{op.Stage, op.Micro}])
	case pipeline.Backward, pipeline.Input:
		m.halved = op.Kind == pipeline.Input
		if m.first == nil {
			return s.backward(m, x)
		}
		return p.both(s, m, x)
	case pipeline.Weight:
		if m.first != nil {
			m.first.weights()
		}
		m.weights()
	}
	return nil
}

// both is the backward pass of a microbatch that went forward in halves: one half after the other,
// with one gradient for both, as the stage before made both before it waits.
func (p *passes) both(s *stage, m *microbatch, dy []float32) []float32 {
	m.first.halved = m.halved
	var dyFirst []float32 // none behind the head, which begins with the loss
	if dy != nil {
		n := m.first.rows() * p.config.Dim
		dyFirst, dy = dy[:n], dy[n:]
	}
	return slices.Concat(s.backward(m.first, dyFirst), s.backward(m, dy))
}

// await is what a pass is given by another stage: the one before, or behind it.
func (p *passes) await(op pipeline.Op, m *microbatch) ([]float32, error) {
	switch op.Kind {
	case pipeline.Forward, pipeline.FirstHalf, pipeline.SecondHalf:
		if op.Stage > 0 {
			return p.receive(kindForward, op.Stage-1, op.Stage, op.Micro, m)
		}
	case pipeline.Backward, pipeline.Input:
		if op.Stage < p.plan.Stages-1 {
			return p.receive(kindBackward, op.Stage+1, op.Stage, op.Micro, m)
		}
	}
	return nil, nil
}

// hand gives what a pass has made to the stage that waits for it.
func (p *passes) hand(op pipeline.Op, y []float32) {
	switch op.Kind {
	case pipeline.Forward, pipeline.FirstHalf, pipeline.SecondHalf:
		if op.Stage < p.plan.Stages-1 {
			p.send(kindForward, op.Stage, op.Stage+1, op.Micro, y)
		}
	case pipeline.Backward, pipeline.Input:
		if op.Stage > 0 {
			p.send(kindBackward, op.Stage, op.Stage-1, op.Micro, y)
		}
	}
}

// begin starts a microbatch at a stage, or one of so many parts of it.
func (p *passes) begin(s *stage, at [2]int32, part, parts int) *microbatch {
	m := s.begin(share(share(p.batch, int(at[1]), int(p.plan.Microbatches)), part, parts), p.weight)
	p.running[at] = m
	return m
}

// wires are the links over which two neighbours talk: the one's to the other, and the
// other's from it.
func (p *passes) wires(from, to int32) (out, in *link) {
	r := p.mesh.pipe
	if int(to) == (int(from)+1)%r.world {
		return r.next, r.prev
	}
	return r.prev, r.next
}

// send hands what one stage has for another to the worker that has that one.
func (p *passes) send(k kind, stage, next, micro int32, x []float32) {
	t := tag{k, uint32(next*p.schedule.Microbatches + micro)}
	from, to := p.schedule.Rank(stage, micro), p.schedule.Rank(next, micro)
	if from == to {
		p.here[t] = append(p.here[t], slices.Clone(x)) // whose microbatch may be finished before this is used
		return
	}
	out, _ := p.wires(from, to)
	out.send(t, x)
	runtime.Gosched() // on one core the link would wait until this worker does
}

// receive waits for what a stage has from another.
func (p *passes) receive(k kind, before, stage, micro int32, m *microbatch) ([]float32, error) {
	t := tag{k, uint32(stage*p.schedule.Microbatches + micro)}
	from, to := p.schedule.Rank(before, micro), p.schedule.Rank(stage, micro)
	if from == to {
		x := p.here[t][0]
		p.here[t] = p.here[t][1:]
		return x, nil
	}
	_, in := p.wires(from, to)
	rows := m.rows()
	if k == kindBackward && m.first != nil { // gradients come for both halves at once
		rows += m.first.rows()
	}
	x := m.arena.take(rows * p.config.Dim)
	return x, in.recv(t, x)
}
