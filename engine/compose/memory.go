package compose

import (
	"encoding/binary"
	"fmt"

	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/unit"
)

var _ schedule.Remembering = (*Scheduler)(nil)

// rememberers are the parts that remember what no State holds, in a fixed order.
func (p *Parts) rememberers() []schedule.Remembering {
	var list []schedule.Remembering
	for _, part := range []any{p.Estimator, p.Gate, p.Order, p.Sizer, p.Placer, p.Planner, p.Flow} {
		if r, ok := part.(schedule.Remembering); ok {
			list = append(list, r)
		}
	}
	return list
}

// Remember encodes the next look at elastic jobs, the memory of every part, and who
// displaced whom.
func (s *Scheduler) Remember() []byte {
	loops := s.loops.Remember()
	if s.resize == unit.Never && len(s.memories)+len(loops) == 0 {
		return nil
	}
	b := binary.AppendVarint(nil, int64(s.resize))
	for _, part := range s.memories {
		memory := part.Remember()
		b = binary.AppendUvarint(b, uint64(len(memory)))
		b = append(b, memory...)
	}
	return append(b, loops...)
}

// Recall reads what Remember wrote.
func (s *Scheduler) Recall(memory []byte) error {
	resize, n := binary.Varint(memory)
	if n <= 0 {
		return fmt.Errorf("the memory of a composed scheduler begins with an instant, this one does not")
	}
	s.resize, memory = unit.Time(resize), memory[n:]
	for i, part := range s.memories {
		size, n := binary.Uvarint(memory)
		if n <= 0 || size > uint64(len(memory)-n) {
			return fmt.Errorf("the memory of part %d of %d is cut short: was the scheduler composed of others?", i+1, len(s.memories))
		}
		if err := part.Recall(memory[n : n+int(size)]); err != nil {
			return err
		}
		memory = memory[n+int(size):]
	}
	return s.loops.Recall(memory)
}
