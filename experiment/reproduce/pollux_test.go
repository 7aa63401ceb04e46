package reproduce_test

import (
	"math"
	"os"
	"testing"

	"github.com/musterdl/muster/experiment/reproduce"
)

// TestPolluxStand: on the stand of its artefact our Pollux is within 8 % of what was
// published, on workload 6 and at twice the load. Its claim allows 7 %, and misses that by little.
func TestPolluxStand(t *testing.T) {
	for ref, published := range map[string]float64{"stand:pollux": 2446.1, "stand:pollux?load=2.0": 5105.3} {
		s := reproduce.Defaults()
		s.Trace, s.Data, s.Strategy = ref, "../../../shared/data", "joint: pollux\noptions: {pollux: {greedy-above: 0, double: true}}"
		if _, err := os.Stat(s.Data + "/pollux-sia"); err != nil {
			t.Skip("no ../shared/data/pollux-sia: the Pollux workloads are not in the repository")
		}
		o, err := reproduce.Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		if r := o.Result; math.Abs(r.Figures["jct_s"]/published-1) > .08 || r.Figures["unfinished"] != 0 || !r.Balanced {
			t.Errorf("%s: average JCT %.1f s, published %.1f, balanced %v", ref, r.Figures["jct_s"], published, r.Balanced)
		}
	}
}

// TestPolluxEvents: in the event-driven world, from the jobs' menus, every job ends, and
// Pollux with the batch it chooses is ahead of Tiresias with the one asked for, which is
// as fast as in the artefact's world but for 10 %.
func TestPolluxEvents(t *testing.T) {
	const archive = "../../../shared/data/pollux-sia/pollux_workloads.tar.gz"
	if _, err := os.Stat(archive); err != nil {
		t.Skip("no ../shared/data/pollux-sia: the Pollux workloads are not in the repository")
	}
	jct := func(strategy, ref string) float64 {
		s := reproduce.Defaults()
		s.Trace, s.Cluster, s.Strategy = "pollux:"+archive+"#workloads/workload-6.csv"+ref, "gpus:16x4", strategy
		o, err := reproduce.Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		if r := o.Result; r.Finished != 160 || !r.Balanced {
			t.Errorf("%s: %d finished, balanced %v", strategy, r.Finished, r.Balanced)
		}
		return o.Result.AvgJCTSec
	}
	tiresias, afs := jct("tiresias", "?batch=asked"), jct("afs+oracle", "")
	pollux := jct("place: first-fit\njoint: pollux\noptions: {pollux: {greedy-above: 0}}", "")
	t.Logf("pollux %.0f s, afs %.0f s, tiresias %.0f s", pollux, afs, tiresias)
	if math.Abs(tiresias/3469.7-1) > .1 || pollux > tiresias || afs > tiresias {
		t.Error("another order than in the artefact's world, or Tiresias far from it")
	}
}
