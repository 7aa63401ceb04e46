package chimera

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"pgregory.net/rapid"
)

// TestPublishedOrder is Chimera's for four ranks and four microbatches: even ones go down,
// odd ones up.
func TestPublishedOrder(t *testing.T) {
	s, _ := New(Default()).Schedule(4, 4, nil)
	for r, want := range []string{
		"0F0 0F2 3F1 3B1 3F3 3B3 0B0 0B2",
		"1F0 2F1 1F2 2F3 2B1 1B0 2B3 1B2",
		"1F1 2F0 1F3 2F2 2B0 1B1 2B2 1B3",
		"0F1 0F3 3F0 3B0 3F2 3B2 0B1 0B3",
	} {
		if got := strings.Trim(fmt.Sprint(s.Orders[r]), "[]"); got != want {
			t.Errorf("rank %d:\n%s\nwant\n%s", r, got, want)
		}
	}
}

// timed is the schedule of equal stages that keep a KiB of each microbatch.
func timed(t testing.TB, o pipeline.Ordering, ranks, microbatches int, forward, backward unit.Duration) *pipeline.Timing {
	s, why := o.Schedule(ranks, microbatches, nil)
	if why != "" {
		t.Fatal(why)
	}
	c := pipeline.Like(ranks)
	for i := range c.Stages {
		c.Stages[i].Forward, c.Stages[i].Input, c.Stages[i].Weight = forward, backward-backward/2, backward/2
	}
	got, why := s.Time(c)
	if why != "" {
		t.Fatal(why)
	}
	return &got
}

// TestRatio: the idle share is what is published where forward and backward passes take
// equally long, and for one unit; for more units of passes that do not it is far above, as
// the last four say, and pairs bring it down to or near the published one.
func TestRatio(t *testing.T) {
	for d := 2; d <= 16; d += 2 {
		for k := 1; k <= 4; k++ {
			n := k * d
			if got, want := timed(t, New(Default()), d, n, 10, 10).IdleShare(), float64(d-2)/float64(2*n+d-2); math.Abs(got-want) > 1e-9 {
				t.Errorf("D=%d N=%d, equal passes: %g, want %g", d, n, got, want)
			}
		}
		if got, want := timed(t, New(Default()), d, d, 10, 20).IdleShare(), float64(d-2)/(1.5*float64(d)+float64(d-2)); math.Abs(got-want) > 1e-9 {
			t.Errorf("D=N=%d, backward passes twice as long: %g, want %g", d, got, want)
		}
	}
	for _, c := range []struct {
		d, n         int
		units, pairs float64
	}{{4, 8, .2, 1. / 9}, {4, 16, 5. / 29, 1. / 17}, {8, 16, 3. / 11, 3. / 19}, {8, 32, 5. / 21, 13. / 109}} {
		units, pairs := timed(t, New(Default()), c.d, c.n, 10, 20), timed(t, New(Config{Pairs}), c.d, c.n, 10, 20)
		if math.Abs(units.IdleShare()-c.units) > 1e-9 || math.Abs(pairs.IdleShare()-c.pairs) > 1e-9 {
			t.Errorf("D=%d N=%d: units %g, pairs %g, want %g and %g", c.d, c.n, units.IdleShare(), pairs.IdleShare(), c.units, c.pairs)
		}
	}
}

// TestPeak: the outer ranks keep D/2+1 activations, the inner ones D; in pairs none
// keeps more than 2D.
func TestPeak(t *testing.T) {
	for d := 2; d <= 16; d += 2 {
		for n := d; n <= 4*d; n += d {
			units, pairs := timed(t, New(Default()), d, n, 10, 20), timed(t, New(Config{Pairs}), d, n, 10, 20)
			for r := range d {
				want := int64(d/2 + 1 + min(r, d-1-r))
				if got := units.Peak[r].ActivationKiB; got != want {
					t.Errorf("D=%d N=%d: rank %d keeps %d, want %d", d, n, r, got, want)
				}
				if got := pairs.Peak[r].ActivationKiB; got > int64(2*d) {
					t.Errorf("D=%d N=%d, in pairs: rank %d keeps %d, want at most %d", d, n, r, got, 2*d)
				}
			}
		}
	}
}

// TestAnyNumber: any number of microbatches has an order, odd ranks have none.
func TestAnyNumber(t *testing.T) {
	for n := 1; n < 30; n++ {
		for _, o := range []pipeline.Ordering{New(Default()), New(Config{Pairs}), Mix{}} {
			timed(t, o, 6, n, 3, 7)
		}
	}
	if _, why := New(Default()).Schedule(3, 6, nil); !strings.Contains(string(why), "even") {
		t.Errorf("3 ranks: %q", why)
	}
}

// scored is what a schedule takes and needs.
func scored(t interface{ Fatal(...any) }, s pipeline.Schedule, c *pipeline.Costs) pipeline.Score {
	n, why := s.Score(c)
	if why != "" {
		t.Fatal(why)
	}
	return n
}

// TestMix: what MixPipe finds is never slower than Chimera or than any that it tries, also
// within Chimera's memory, which it then keeps.
func TestMix(t *testing.T) {
	faster := 0
	draws.Check(t, func(t *rapid.T) {
		ranks := 2 * rapid.IntRange(1, 4).Draw(t, "half of the ranks")
		n := rapid.IntRange(1, 4*ranks).Draw(t, "microbatches")
		c := pipeline.Like(ranks)
		for i := range c.Stages {
			c.Stages[i].Forward = unit.Duration(rapid.IntRange(1, 9).Draw(t, "forward"))
			c.Stages[i].Input = unit.Duration(rapid.IntRange(1, 9).Draw(t, "backward"))
			c.Stages[i].ActivationKiB = 1024
		}
		base, _ := New(Default()).Schedule(ranks, n, nil)
		was := scored(t, base, &c)
		limited := c
		limited.Memory = unit.MiB(was.PeakKiB >> 10)
		for _, c := range []*pipeline.Costs{&c, &limited} {
			s, why := Mix{}.Schedule(ranks, n, c)
			if why != "" {
				t.Fatal(why)
			}
			got := scored(t, s, c)
			if got.Makespan > was.Makespan || got.OverKiB > 0 || c.Memory > 0 && got.PeakKiB > was.PeakKiB {
				t.Fatalf("%+v, Chimera %+v", got, was)
			}
			if got.Makespan < was.Makespan {
				faster++
			}
			for _, k := range []int{1, ranks} {
				end, _ := mixed(ranks, n, k, 0, c)
				if at := scored(t, end, c); k == 1 && at.Better(got) {
					t.Fatalf("%+v, with k=%d %+v", got, k, at)
				}
			}
		}
		plain, _ := Mix{}.Schedule(ranks, n, nil)
		if !slices.EqualFunc(plain.Orders, base.Orders, slices.Equal) {
			t.Fatal("without costs it is not Chimera's")
		}
	})
	if faster == 0 {
		t.Error("it is never faster")
	}
	for d := 2; d <= 8; d += 2 { // D/2 that begin at once do as Chimera does
		for n := d; n <= 3*d; n += d {
			c := pipeline.Like(d)
			for i := range c.Stages {
				c.Stages[i].Weight = 0
			}
			half, _ := mixed(d, n, d/2, 0, &c)
			base, _ := New(Default()).Schedule(d, n, nil)
			if got, want := scored(t, half, &c), scored(t, base, &c); got != want {
				t.Errorf("D=%d N=%d: %+v, Chimera %+v", d, n, got, want)
			}
		}
	}
}
