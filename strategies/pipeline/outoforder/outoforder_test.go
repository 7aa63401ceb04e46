package outoforder

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"pgregory.net/rapid"
)

// TestIdle: on equal stages a rank is never idle for longer than under ZB-H1, which is
// (p-1) max(TI, TF + max(0, TI-TW)).
func TestIdle(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(1, 8).Draw(t, "ranks")
		m := rapid.IntRange(2*p, 4*p).Draw(t, "microbatches")
		c := pipeline.Like(p)
		f, i, w := unit.Duration(rapid.IntRange(1, 50).Draw(t, "forward")), unit.Duration(rapid.IntRange(1, 50).Draw(t, "input")), unit.Duration(rapid.IntRange(1, 50).Draw(t, "weight"))
		for s := range c.Stages {
			c.Stages[s].Forward, c.Stages[s].Input, c.Stages[s].Weight = f, i, w
		}
		s, why := Ordering{}.Schedule(p, m, &c)
		if why != "" {
			t.Fatal(why)
		}
		got, why := s.Time(c)
		if why != "" {
			t.Fatal(why)
		}
		if most := unit.Duration(p-1) * max(i, f+max(0, i-w)); got.Idle(0) > most {
			t.Fatalf("p=%d m=%d F=%d I=%d W=%d: idle for %d, under ZB-H1 %d", p, m, f, i, w, got.Idle(0), most)
		}
	})
}

// TestAgainst1F1B: whatever the stages take, nothing is later done than under 1F1B with whole
// backward passes, also in its memory; that no more is computed, Time's check says.
func TestAgainst1F1B(t *testing.T) {
	sooner := 0
	draws.Check(t, func(t *rapid.T) {
		p, m := rapid.IntRange(1, 6).Draw(t, "ranks"), rapid.IntRange(1, 16).Draw(t, "microbatches")
		c := pipeline.Like(p)
		for s := range c.Stages {
			c.Stages[s].Forward = unit.Duration(rapid.IntRange(1, 50).Draw(t, "forward"))
			c.Stages[s].Input = unit.Duration(rapid.IntRange(1, 50).Draw(t, "input"))
			c.Stages[s].Weight = unit.Duration(rapid.IntRange(1, 50).Draw(t, "weight"))
			c.Stages[s].ActivationKiB = 1024
		}
		whole := pipeline.NewSchedule(p, m, pipeline.Straight(p))
		for r := range p {
			whole.Line(r).Alternate(whole.Chunks(r)[0], p-1-r)
		}
		base, why := whole.Score(&c)
		limited := c
		limited.Memory = unit.MiB(base.PeakKiB >> 10)
		for _, c := range []*pipeline.Costs{&c, &limited} {
			s, more := Ordering{}.Schedule(p, m, c)
			got, again := s.Score(c)
			if why+more+again != "" {
				t.Fatal(why + more + again)
			}
			if got.Makespan > base.Makespan || got.OverKiB > 0 {
				t.Fatalf("%+v, 1F1B %+v", got, base)
			}
			if got.Makespan < base.Makespan {
				sooner++
			}
		}
	})
	if sooner == 0 {
		t.Error("it is never sooner done")
	}
}

// TestNoneWaits: without costs it is 1F1B with the halves behind each other.
func TestNoneWaits(t *testing.T) {
	s, _ := Ordering{}.Schedule(2, 2, nil)
	for r, want := range [][]string{{"0F0", "0F1", "0I0", "0W0", "0I1", "0W1"}, {"1F0", "1I0", "1W0", "1F1", "1I1", "1W1"}} {
		if !slices.EqualFunc(s.Orders[r], want, func(op pipeline.Op, text string) bool { return op.String() == text }) {
			t.Errorf("rank %d: %v, want %v", r, s.Orders[r], want)
		}
	}
}
