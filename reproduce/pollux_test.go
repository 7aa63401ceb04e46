package reproduce_test

import (
	"math"
	"os"
	"testing"

	"github.com/musterdl/muster/reproduce"
)

// TestPolluxArtefact: in the artefact's own world its two baselines come out within
// .1 % of what it published for workload 6.
func TestPolluxArtefact(t *testing.T) {
	const archive = "../../shared/data/pollux-sia/pollux_workloads.tar.gz"
	if _, err := os.Stat(archive); err != nil {
		t.Skip("no ../shared/data/pollux-sia: the Pollux workloads are not in the repository")
	}
	for strategy, published := range map[string]float64{"tiresias": 3469.69375, "optimus": 5301.875} {
		s := reproduce.Defaults()
		s.Trace, s.Cluster, s.Strategy, s.World = "pollux:"+archive+"#workloads/workload-6.csv", "gpus:16x4", strategy, reproduce.PolluxArtefact
		o, err := reproduce.Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		if r := o.Result; math.Abs(r.AvgJCTSec/published-1) > .001 || r.Finished != 160 || !r.Balanced {
			t.Errorf("%s: average JCT %.3f s, published %.3f; %d finished, balanced %v", strategy, r.AvgJCTSec, published, r.Finished, r.Balanced)
		}
		s.World = ""
		if strategy == "optimus" {
			continue // an elastic strategy of a later step
		}
		if o, err = reproduce.Simulate(s); err != nil || o.Result.Finished != 160 || !o.Result.Balanced {
			t.Errorf("%s, event-driven: %+v, %v", strategy, o, err)
		}
	}
}
