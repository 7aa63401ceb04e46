package autopipe

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
)

// drawn draws pipelines of 2 to 6 stages, alike or not, whose links take no time, a latency or are
// slow, and has them looked at.
func drawn(seed uint64, cases int, look func(ranks, microbatches int, c *pipeline.Costs)) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range cases {
		p := 2 + r.IntN(5)
		c := pipeline.Like(p)
		for s := range c.Stages {
			pass := func() unit.Duration { return unit.Duration(10 + r.IntN(90)) }
			c.Stages[s] = pipeline.Stage{Forward: pass(), Input: pass(), Weight: pass(), OutputKiB: r.Int64N(100), ActivationKiB: 1 + r.Int64N(9)}
		}
		if r.IntN(2) == 0 {
			for s := range c.Stages {
				c.Stages[s] = c.Stages[0]
			}
		}
		c.Latency, c.Bandwidth = unit.Duration(r.IntN(2)*r.IntN(20)), unit.Mbps(r.IntN(2)*(5000+r.IntN(50_000)))
		look(p, 1+r.IntN(4*p), &c)
	}
}

// scored is what so many sliced microbatches make of 1F1B.
func scored(t testing.TB, ranks, microbatches, halved int, c *pipeline.Costs) pipeline.Score {
	s := sliced(ranks, microbatches, halved)
	n, why := s.Score(c)
	if why != "" {
		t.Fatal(why)
	}
	return n
}

// TestSlicer: what is sliced takes the least time of all numbers of sliced microbatches in the
// warm-up, no longer than 1F1B, and no more memory.
func TestSlicer(t *testing.T) {
	gained := 0
	drawn(1, 300, func(p, m int, c *pipeline.Costs) {
		s, why := Slicer{}.Schedule(p, m, c)
		if why != "" {
			t.Fatal(why)
		}
		got, _ := s.Score(c)
		least, whole := unit.Forever, scored(t, p, m, 0, c)
		for k := range min(p, m) + 1 {
			least = min(least, scored(t, p, m, k, c).Makespan)
		}
		if got.Makespan != least || got.Makespan > whole.Makespan || got.PeakKiB > whole.PeakKiB {
			t.Errorf("%d stages, %d microbatches: %+v, the least is %d, 1F1B %+v", p, m, got, least, whole)
		}
		if got.Makespan < whole.Makespan {
			gained++
		}
	})
	if gained < 150 {
		t.Errorf("%d of 300 gained", gained)
	}
}

// TestSlicedOrder is the order of four ranks whose backward passes take twice as long: one
// microbatch is enough.
func TestSlicedOrder(t *testing.T) {
	c := pipeline.Like(4)
	for s := range c.Stages {
		c.Stages[s].Forward, c.Stages[s].Input, c.Stages[s].Weight = 10, 10, 10
	}
	s, why := Slicer{}.Schedule(4, 4, &c)
	if why != "" {
		t.Fatal(why)
	}
	for r, want := range []string{"0G0 0H0 0F1 0F2 0F3 0B0 0B1 0B2 0B3", "1G0 1H0 1F1 1F2 1B0 1F3 1B1 1B2 1B3", "2G0 2H0 2F1 2B0 2F2 2B1 2F3 2B2 2B3", "3G0 3H0 3B0 3F1 3B1 3F2 3B2 3F3 3B3"} {
		if got := strings.Trim(fmt.Sprint(s.Orders[r]), "[]"); got != want {
			t.Errorf("rank %d: %s, want %s", r, got, want)
		}
	}
	// The last rank begins after half a pass on each before it, and 1F1B after a whole one.
	got, _ := s.Time(c)
	if at := got.Spans[3][0].Start; at != 15 || got.Makespan != 7*30-15 {
		t.Errorf("the last rank begins at %d, all takes %d; want 15 and %d", at, got.Makespan, 7*30-15)
	}
}

// TestPlanSliced: the planner cuts as for 1F1B and slices what comes of it.
func TestPlanSliced(t *testing.T) {
	paralleltest.Draw(5, 40, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
		whole, why := improve(x, &s)
		s.Sequence = parallel.Sequence{Name: SlicerDescription.Name, Order: Slicer{}}
		got, not := improve(x, &s)
		if why+not != "" {
			t.Fatal(why + not)
		}
		if got[0].Result.Step >= whole[0].Result.Step || got[0].Plan.Sequence.Name != s.Sequence.Name {
			t.Errorf("%v takes %d, %v %d", &got[0].Plan, got[0].Result.Step, &whole[0].Plan, whole[0].Result.Step)
		}
	})
}
