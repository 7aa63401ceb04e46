package swarm

import (
	"math"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/strategies/pipeline/equal"
	"pgregory.net/rapid"
)

// TestShares: each rank gets the part of the microbatches that its speed is of the speed of
// its stage, to one microbatch, and the schedule runs.
func TestShares(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		o := New(Config{Peers: rapid.IntRange(1, 4).Draw(t, "peers"), Seed: rapid.Uint64().Draw(t, "seed")})
		ranks, m := o.config.Peers*rapid.IntRange(1, 4).Draw(t, "stages"), rapid.IntRange(1, 300).Draw(t, "microbatches")
		stages := ranks / o.config.Peers
		c := pipeline.Like(stages)
		c.Speeds = rapid.SliceOfN(rapid.Float64Range(.25, 4), ranks, ranks).Draw(t, "speeds")
		s, why := o.Schedule(ranks, m, &c)
		if why != "" {
			t.Fatal(why)
		}
		if _, why := s.Time(c); why != "" {
			t.Fatal(why)
		}
		if m > wired*o.config.Peers {
			return
		}
		for rank, order := range s.Orders {
			first := rank / o.config.Peers * o.config.Peers
			sum := 0.
			for _, speed := range c.Speeds[first : first+o.config.Peers] {
				sum += speed
			}
			if want := float64(m) * c.Speeds[rank] / sum; math.Abs(float64(len(order))/2-want) > float64(o.config.Peers) {
				t.Fatalf("rank %d of speeds %v does %d of %d microbatches, its speed is worth %g", rank, c.Speeds, len(order)/2, m, want)
			}
		}
	})
}

// TestSlowPeer: a rank of half the speed costs a stage of two peers a quarter of its speed, and
// 1F1B, in which all go over that rank, half.
func TestSlowPeer(t *testing.T) {
	layers := make([]workload.Layer, 8)
	for i := range layers {
		layers[i] = workload.Layer{Forward: unit.Millisecond, Backward: 2 * unit.Millisecond}
	}
	job := workload.Pipeline{Stages: 4, Microbatches: 120, Layers: layers}
	iteration := func(speeds ...float64) float64 {
		plan, why := pipeline.Build(equal.Partitioner{}, New(Default()), job, pipeline.Params{Speeds: speeds})
		if why != "" {
			t.Fatal(why)
		}
		return plan.Iteration.Seconds()
	}
	if slow := iteration(1, .5, 1, 1) / iteration(1, 1, 1, 1); slow < 1.3 || slow > 1.36 {
		t.Errorf("%g times as long, expected 2/1.5", slow)
	}
}

// TestFewRanks says what is missing.
func TestFewRanks(t *testing.T) {
	if _, why := New(Config{Peers: 3}).Schedule(2, 4, nil); !strings.Contains(string(why), "2 ranks for stages of 3 peers") {
		t.Errorf("%q", why)
	}
}
