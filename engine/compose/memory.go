package compose

import (
	"fmt"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/schedule"
)

var _ schedule.Remembering = (*Scheduler)(nil)

// rememberers are those of a placer's links and of the other parts that remember what
// no State holds, in this order.
func rememberers(placer allocate.Placer, parts ...any) (list []schedule.Remembering) {
	for _, link := range allocate.Links(placer) {
		parts = append(parts, link)
	}
	for _, part := range parts {
		if r, ok := part.(schedule.Remembering); ok {
			list = append(list, r)
		}
	}
	return list
}

// Remember encodes the next look at elastic jobs, or when the decider was and wants to be
// asked, the memory of every part, and who displaced whom.
func (s *Scheduler) Remember() []byte {
	loops := s.claims.loops.Remember()
	if r := s.round; r != nil {
		return append(appendMemories(figures.Put(nil, int64(r.last), int64(r.again)), s.able.memories), loops...)
	}
	if s.making.resize == unit.Never && len(s.able.memories)+len(loops) == 0 {
		return nil
	}
	return append(appendMemories(figures.Put(nil, int64(s.making.resize)), s.able.memories), loops...)
}

func appendMemories(b []byte, parts []schedule.Remembering) []byte {
	for _, part := range parts {
		b = figures.PutBytes(b, part.Remember())
	}
	return b
}

// Recall reads what Remember wrote. A question that was out is put again.
func (s *Scheduler) Recall(memory []byte) error {
	instants := []*unit.Time{&s.making.resize}
	if s.round != nil {
		instants, s.round.asked = []*unit.Time{&s.round.last, &s.round.again}, nil
	}
	r := figures.Read(memory)
	for _, at := range instants {
		x := unit.Time(r.Next())
		if r.Cut() {
			return fmt.Errorf("the memory of a composed scheduler begins with an instant, this one does not")
		}
		*at = x
	}
	if err := recallMemories(r, s.able.memories); err != nil {
		return err
	}
	return s.claims.loops.Recall(r.Rest())
}

// recallMemories hands each part its memory.
func recallMemories(r *figures.Reader, parts []schedule.Remembering) error {
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
