package compose

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
)

// all are the parts with the placer's links, in the order in which memories are written.
func (p *Parts) all() (list []any) {
	for _, link := range allocate.Links(p.Placer) {
		list = append(list, link)
	}
	return append(list, p.Joint, p.Estimator, p.Gate, p.Order, p.Sizer, p.Planner, p.Flow, p.Rater, p.Switcher, p.Victims, p.Reaction, p.Sharer)
}

// memories are the parts that remember what no State holds. A decider that is in several
// places has one memory.
func (p *Parts) memories() (list []strategy.Remembering) {
	for _, part := range p.all() {
		if r, ok := strategy.Can[strategy.Remembering](part); ok && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// Remember encodes the next look at elastic jobs, or when the decider was and wants to be
// asked, when a run may be displaced again and whether something has happened since it was asked, the memory of every part, and who displaced whom.
func (s *Scheduler) Remember() []byte {
	loops, b := s.room.Loops.Remember(), s.memory[:0]
	switch {
	case s.round != nil:
		f := s.round.Figures()
		b = figures.Put(b, f[:]...)
	case s.making.resize == unit.Never && len(s.able.memories)+len(loops) == 0:
		return nil
	default:
		b = figures.Put(b, int64(s.making.resize))
	}
	s.memory = append(appendMemories(b, s.able.memories), loops...)
	return s.memory
}

func appendMemories(b []byte, parts []strategy.Remembering) []byte {
	for _, part := range parts {
		b = figures.PutBytes(b, part.Remember())
	}
	return b
}

// Recall reads what Remember wrote. A question that was out is put again.
func (s *Scheduler) Recall(memory []byte) error {
	r, f, n := figures.Read(memory), [4]int64{}, 1
	if s.round != nil {
		n = len(f)
	}
	for i := range n {
		if f[i] = r.Next(); r.Cut() {
			return fmt.Errorf("the memory of a composed scheduler begins with %d figures, this one does not", n)
		}
	}
	if s.round != nil {
		s.round.Recall(f)
	} else {
		s.making.resize = unit.Time(f[0])
	}
	if err := recallMemories(r, s.able.memories); err != nil {
		return err
	}
	return s.room.Loops.Recall(r.Rest())
}

// recallMemories hands each part its memory.
func recallMemories(r *figures.Reader, parts []strategy.Remembering) error {
	for i, part := range parts {
		memory := r.Bytes()
		if r.Cut() {
			return fmt.Errorf("the memory of part %d of %d is cut short: was the scheduler composed of others?", i+1, len(parts))
		}
		if err := part.Recall(memory); err != nil {
			return err
		}
	}
	return nil
}

// Asks hands over the questions of the last decision.
func (s *Scheduler) Asks() []strategy.Ask {
	if s.round == nil {
		return nil
	}
	return s.round.Asks()
}

// Answer solves a question that the decider put.
func (s *Scheduler) Answer(question []byte) ([]byte, error) {
	if s.round == nil {
		return nil, fmt.Errorf("this strategy asks nothing")
	}
	return s.round.Answer(question)
}
