package trainer

import (
	"slices"

	"github.com/musterdl/muster/pipeline"
)

// passes are one worker's part of a step that goes by a plan.
type passes struct {
	*worker
	schedule pipeline.Schedule
	batch    []sequence
	weight   float32
	running  map[[2]int32]*microbatch // by stage and number
	// here is what one stage of this worker has for another.
	here map[tag][]float32
	// again are the inputs of those that are to be computed again; all else is let go of.
	again map[[2]int32][]float32
}

// pipeline executes this worker's order. Two passes that the plan has at once come one after
// the other.
func (w *worker) pipeline(batch []sequence, weight float32) error {
	p := &passes{worker: w, schedule: w.plan.Schedule(), batch: batch, weight: weight, running: map[[2]int32]*microbatch{}, here: map[tag][]float32{}, again: map[[2]int32][]float32{}}
	for _, op := range w.plan.Orders[w.ring.rank] {
		if op.Kind == pipeline.Recompute {
			p.again[[2]int32{op.Stage, op.Micro}] = nil
		}
	}
	for _, op := range w.plan.Orders[w.ring.rank] {
		if err := p.do(op); err != nil {
			return err
		}
	}
	return nil
}

// do executes one pass.
func (p *passes) do(op pipeline.Op) error {
	s, at := p.stages[slices.Index(p.held, op.Stage)], [2]int32{op.Stage, op.Micro}
	last := int32(p.schedule.Stages()) - 1
	m := p.running[at]
	var x []float32
	var err error
	switch op.Kind {
	case pipeline.Forward:
		m = p.begin(s, at)
		if op.Stage > 0 {
			if x, err = p.receive(kindForward, op.Stage-1, op.Stage, op.Micro, m); err != nil {
				return err
			}
		}
		if y := s.forward(m, x); op.Stage < last {
			p.send(kindForward, op.Stage, op.Stage+1, op.Micro, y)
		}
		if _, again := p.again[at]; again {
			p.again[at] = slices.Clone(x)
			s.finish(m)
		}
		return nil
	case pipeline.Recompute:
		s.compute(p.begin(s, at), p.again[at])
		return nil
	case pipeline.Backward, pipeline.Input:
		if op.Stage < last {
			if x, err = p.receive(kindBackward, op.Stage+1, op.Stage, op.Micro, m); err != nil {
				return err
			}
		}
		m.halved = op.Kind == pipeline.Input
		if dx := s.backward(m, x); op.Stage > 0 {
			p.send(kindBackward, op.Stage, op.Stage-1, op.Micro, dx)
		}
		if m.halved {
			return nil
		}
	}
	s.finish(m)
	return nil
}

// begin starts a microbatch at a stage.
func (p *passes) begin(s *stage, at [2]int32) *microbatch {
	m := s.begin(share(p.batch, int(at[1]), int(p.plan.Microbatches)), p.weight)
	p.running[at] = m
	return m
}

// wires are the links over which two neighbours talk: the one's to the other, and the
// other's from it.
func (p *passes) wires(from, to int32) (out, in *link) {
	if int(to) == (int(from)+1)%p.ring.world {
		return p.ring.next, p.ring.prev
	}
	return p.ring.prev, p.ring.next
}

// send hands what one stage has for another to the worker that has that one.
func (p *passes) send(k kind, stage, next, micro int32, x []float32) {
	t := tag{k, uint32(next*p.schedule.Microbatches + micro)}
	from, to := p.schedule.Rank(stage, micro), p.schedule.Rank(next, micro)
	if from == to {
		p.here[t] = slices.Clone(x) // whose microbatch may be finished before this is used
		return
	}
	out, _ := p.wires(from, to)
	out.send(t, x)
}

// receive waits for what a stage has from another.
func (p *passes) receive(k kind, before, stage, micro int32, m *microbatch) ([]float32, error) {
	t := tag{k, uint32(stage*p.schedule.Microbatches + micro)}
	from, to := p.schedule.Rank(before, micro), p.schedule.Rank(stage, micro)
	if from == to {
		x := p.here[t]
		delete(p.here, t)
		return x, nil
	}
	_, in := p.wires(from, to)
	x := m.arena.take(m.rows() * p.config.Dim)
	return x, in.recv(t, x)
}
