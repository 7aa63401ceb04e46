package plane

import (
	"bytes"
	"fmt"

	"github.com/musterdl/muster/catalogue"
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
// history, and the configuration must be the one it was made with.
func Verify(config Config) (Verdict, error) {
	var found Verdict
	built, err := config.Strategy.Build(catalogue.Env{Seed: config.Seed}, true)
	if err != nil {
		return found, err
	}
	e := engine.New(config.Cluster, built.Scheduler, config.Policy)
	err = config.Journal.Replay(1, func(b store.Batch) error {
		if found.Differs != 0 {
			return nil
		}
		now, events, line, _, _, err := decodeBatch(b)
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
