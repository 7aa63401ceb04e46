package pipelines_test

import (
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/simulated/world"
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

// TestSlicesLiveOn: a run that goes by a planner's plan of two copies, each sliced over the two devices of a node,
// loses one of them. Where the world says that those who share a layer save too, a step and a save are lost; else
// what the last checkpoint does not have.
func TestSlicesLiveOn(t *testing.T) {
	const save, mid = 3 * unit.Second, unit.Time(9 * unit.Minute)
	for slices, want := range map[bool]unit.Duration{true: 9*unit.Minute - unit.Second - save, false: 5 * unit.Minute} {
		spread := workload.Spread{Name: "tp2 pp1 dp2", Step: unit.Second, Shape: `{"sequence":"1f1b","samples":1,"microbatches":1,"tensor":2,"ranks":1,"copies":2}`}
		j := workload.Job{Name: "large", Resources: workload.Resources{Gang: 4, Devices: 1, Share: unit.Whole}, Checkpoint: workload.Checkpoint{Every: 5 * unit.Minute, Save: save, OnRequest: true}}
		j.Menu = []workload.Offer{{Model: "gpu", Workers: 4, Nodes: 2, Rate: 1, Plan: spread}}
		config := scheduletest.Config(scheduletest.Nodes(2, 2, 1000), scheduletest.Jobs{{Job: j, Truth: workload.Truth{Duration: unit.Hour}}}, reacting(byprice.None{}))
		config.World = world.Config{Slices: slices}
		config.Later = []simulated.Later{{At: mid, Event: engine.Event{Kind: engine.NodeDown}}, {At: mid.Add(unit.Hour), Event: engine.Event{Kind: engine.NodeUp}}}
		steps, _ := played(t, config)
		found := false
		for _, st := range steps {
			for _, e := range st.events {
				if e.Kind != engine.Exited || st.at != mid {
					continue
				}
				if found = true; e.Kept != want {
					t.Errorf("slices are saved %v: %v is kept, want %v", slices, e.Kept, want)
				}
			}
		}
		if !found {
			t.Error("no run ended with the node")
		}
	}
}
