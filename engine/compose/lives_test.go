package compose_test

import (
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
)

// TestWhatLivesOn: of two pipelines of two stages one loses a node, and what the run did is kept but
// for a step: the other pipeline has it all. Where both lose the same stage only the last checkpoint
// is left, and likewise where there is one pipeline.
func TestWhatLivesOn(t *testing.T) {
	lost := func(copies, perNode int32) (kept unit.Duration) {
		large := drifting(2)
		large.Drifts, large.Gang = nil, 2*copies
		config := scheduletest.Config(scheduletest.Nodes(int(4/perNode), int(perNode), 1000), scheduletest.Jobs{large}, reacting(byprice.None{}))
		config.Check = true
		mid := unit.Time(9 * unit.Minute)
		config.Later = []simulated.Later{{At: mid, Event: engine.Event{Kind: engine.NodeDown}}, {At: mid.Add(unit.Hour), Event: engine.Event{Kind: engine.NodeUp}}}
		steps, _ := played(t, config)
		for _, st := range steps {
			for _, e := range st.events {
				if e.Kind == engine.Exited && st.at == mid {
					kept = e.Kept
				}
			}
		}
		return kept
	}
	const step = 5 * unit.Second // at most
	// The workers of a stage's copies are neighbours: a node of two has all of the first stage.
	for _, c := range []struct {
		copies, perNode int32
		least, most     unit.Duration
	}{
		{2, 1, 9*unit.Minute - step, 9*unit.Minute - 1},
		{2, 2, 5 * unit.Minute, 5 * unit.Minute},
		{1, 1, 5 * unit.Minute, 5 * unit.Minute},
	} {
		if got := lost(c.copies, c.perNode); got < c.least || got > c.most {
			t.Errorf("%d copies, %d devices in the node that is lost: %v is kept, want %v to %v", c.copies, c.perNode, got, c.least, c.most)
		}
	}
}
