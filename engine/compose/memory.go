package compose

import (
	"encoding/binary"
	"fmt"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/unit"
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

// Remember encodes the next look at elastic jobs, the memory of every part, and who
// displaced whom.
func (s *Scheduler) Remember() []byte {
	loops := s.loops.Remember()
	if s.resize == unit.Never && len(s.memories)+len(loops) == 0 {
		return nil
	}
	b := binary.AppendVarint(nil, int64(s.resize))
	return append(appendMemories(b, s.memories), loops...)
}

func appendMemories(b []byte, parts []schedule.Remembering) []byte {
	for _, part := range parts {
		memory := part.Remember()
		b = binary.AppendUvarint(b, uint64(len(memory)))
		b = append(b, memory...)
	}
	return b
}

// Recall reads what Remember wrote.
func (s *Scheduler) Recall(memory []byte) error {
	resize, n := binary.Varint(memory)
	if n <= 0 {
		return fmt.Errorf("the memory of a composed scheduler begins with an instant, this one does not")
	}
	s.resize = unit.Time(resize)
	rest, err := recallMemories(memory[n:], s.memories)
	if err != nil {
		return err
	}
	return s.loops.Recall(rest)
}

// recallMemories hands each part its memory and returns what follows.
func recallMemories(memory []byte, parts []schedule.Remembering) ([]byte, error) {
	for i, part := range parts {
		size, n := binary.Uvarint(memory)
		if n <= 0 || size > uint64(len(memory)-n) {
			return nil, fmt.Errorf("the memory of part %d of %d is cut short: was the scheduler composed of others?", i+1, len(parts))
		}
		if err := part.Recall(memory[n : n+int(size)]); err != nil {
			return nil, err
		}
		memory = memory[n+int(size):]
	}
	return memory, nil
}
