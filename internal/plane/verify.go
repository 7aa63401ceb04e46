package plane

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
)

// Verdict is what deciding a journal again found.
type Verdict struct {
	Batches int64 `json:"batches"`
	Commits int64 `json:"commits"`
	Events  int64 `json:"events"`
	// Differs is the first batch whose commit is not the recorded one; 0 is none.
	Differs  int64  `json:"differs,omitempty"`
	Recorded string `json:"recorded,omitempty"`
	Decided  string `json:"decided,omitempty"`
}

// Verify decides the history of a journal again, from its beginning, and compares
// every commit byte for byte with what was recorded. The journal must hold its whole
// history; what it was decided with is in it.
func Verify(journal *store.Store) (Verdict, error) {
	var found Verdict
	var e *engine.Engine
	var decide decider
	err := journal.Replay(1, func(b store.Batch) error {
		if found.Differs != 0 {
			return nil
		}
		now, events, line, _, _, err := decodeBatch(b)
		if err == nil && e == nil {
			e, err = firstEngine(events)
		}
		if err == nil {
			err = decide.follow(e, events)
		}
		if err != nil {
			return fmt.Errorf("batch %d: %w", b.Seq, err)
		}
		out := e.Step(now, events)
		var decided []byte
		if out.Commit != nil {
			decided = out.Commit.AppendJSON(nil, e.View())
			found.Commits++
		}
		found.Batches++
		found.Events += int64(len(events))
		if !bytes.Equal(decided, line) {
			found.Differs, found.Recorded, found.Decided = int64(b.Seq), string(line), string(decided)
		}
		return nil
	})
	return found, err
}

// firstEngine is the engine a history began with, by its first events.
func firstEngine(events []engine.Event) (*engine.Engine, error) {
	s, err := firstSetting(events)
	if err != nil {
		return nil, err
	}
	sched, err := s.scheduler()
	if err != nil {
		return nil, err
	}
	return engine.New(s.Cluster, sched, s.Policy), nil
}

// firstSetting is what a history began with.
func firstSetting(events []engine.Event) (setting, error) {
	for i := range events {
		if events[i].Kind == engine.Rebuilt {
			return parseSetting(events[i].Setting)
		}
	}
	return setting{}, errors.New("the journal does not begin with the start of a control plane")
}
