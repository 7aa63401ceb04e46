package hanayo

import (
	"math"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"pgregory.net/rapid"
)

// timed is the order for ranks of equal work, forward 1 ms and backward 2 ms for each
// microbatch, and as many KiB as there are stages on a rank.
func timed(t interface{ Fatal(...any) }, ranks, microbatches, waves int, latency unit.Duration) *pipeline.Timing {
	c := pipeline.Like(2 * waves * ranks)
	c.Latency = latency
	for i := range c.Stages {
		each := unit.Millisecond / unit.Duration(2*waves)
		c.Stages[i] = pipeline.Stage{Forward: each, Input: each, Weight: each, ActivationKiB: 1}
	}
	s, why := New(Config{waves}).Schedule(ranks, microbatches, &c)
	if why != "" {
		t.Fatal(why)
	}
	got, why := s.Time(c)
	if why != "" {
		t.Fatal(why)
	}
	return &got
}

// TestRatio: with as many microbatches as ranks the idle share falls with the waves, below
// GPipe's 3/7 of four ranks, and no rank keeps more than p microbatches of all its stages. With more
// microbatches it need not fall: 16 on four ranks take longer in four waves than in two.
func TestRatio(t *testing.T) {
	for _, c := range []struct {
		ranks, microbatches int
		want                [3]float64 // of one, two and four waves
	}{{4, 4, [3]float64{12. / 36, 6.5 / 30.5, 3.25 / 27.25}}, {8, 8, [3]float64{28. / 76, 15. / 63, 7.5 / 55.5}}, {4, 16, [3]float64{14. / 110, 5. / 101, 14. / 110}}} {
		for i, want := range c.want {
			waves := 1 << i
			got := timed(t, c.ranks, c.microbatches, waves, 0)
			if math.Abs(got.IdleShare()-want) > 1e-9 {
				t.Errorf("%d ranks, %d microbatches, %d waves: %.4f, want %.4f", c.ranks, c.microbatches, waves, got.IdleShare(), want)
			}
			for r, peak := range got.Peak {
				if most := int64(2 * waves * c.ranks); c.microbatches == c.ranks && peak.ActivationKiB > most {
					t.Errorf("%d ranks, %d waves: rank %d keeps %d, want at most %d", c.ranks, waves, r, peak.ActivationKiB, most)
				}
			}
		}
	}
}

// TestBound: nothing is sooner done than N T + (p-1) T / 2W.
func TestBound(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p, waves := rapid.IntRange(1, 8).Draw(t, "ranks"), 1<<rapid.IntRange(0, 2).Draw(t, "waves")
		n := rapid.IntRange(1, 24).Draw(t, "microbatches")
		least := unit.Duration(n)*3*unit.Millisecond + unit.Duration(p-1)*3*unit.Millisecond/unit.Duration(2*waves)
		if got := timed(t, p, n, waves, 0); got.Makespan < least {
			t.Fatalf("%d ranks, %d microbatches, %d waves: %v, at least %v", p, n, waves, got.Makespan, least)
		}
	})
}

// TestHops: where each hop costs, more waves are better only up to some number.
func TestHops(t *testing.T) {
	var took []unit.Duration
	for _, waves := range []int{1, 2, 4} {
		took = append(took, timed(t, 4, 4, waves, 100).Makespan)
	}
	if !(took[1] < took[0] && took[1] < took[2]) {
		t.Errorf("one, two and four waves take %v, want two to be the best", took)
	}
}
