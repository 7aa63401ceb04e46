package zerobubble

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"pgregory.net/rapid"
)

// TestPublishedOrder is H1's for two ranks and four microbatches.
func TestPublishedOrder(t *testing.T) {
	s, _ := H1{}.Schedule(2, 4, nil)
	for r, want := range []string{
		"0F0 0F1 0I0 0W0 0F2 0I1 0W1 0F3 0I2 0W2 0I3 0W3",
		"1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1F3 1I3 1W2 1W3",
	} {
		if got := strings.Trim(fmt.Sprint(s.Orders[r]), "[]"); got != want {
			t.Errorf("rank %d:\n%s\nwant\n%s", r, got, want)
		}
	}
}

// drawn are the costs of equal stages.
func drawn(t *rapid.T, p int) (c pipeline.Costs, f, i, w unit.Duration) {
	f = unit.Duration(rapid.IntRange(1, 50).Draw(t, "forward"))
	i = unit.Duration(rapid.IntRange(1, 50).Draw(t, "input"))
	w = unit.Duration(rapid.IntRange(1, 50).Draw(t, "weight"))
	c = pipeline.Like(p)
	for s := range c.Stages {
		c.Stages[s].Forward, c.Stages[s].Input, c.Stages[s].Weight = f, i, w
	}
	return c, f, i, w
}

func timed(t *rapid.T, o pipeline.Ordering, p, m int, c pipeline.Costs) pipeline.Timing {
	s, why := o.Schedule(p, m, nil)
	if why != "" {
		t.Fatal(why)
	}
	got, why := s.Time(c)
	if why != "" {
		t.Fatal(why)
	}
	return got
}

// TestH1: every rank is idle for (p-1) max(TI, TF + max(0, TI-TW)), which is less than 1F1B's,
// and keeps p activations. What is published, (p-1)(TF+TI-TW), is too little where TW > TI,
// and where a forward pass is shorter than both halves: the first rank waits for its first
// gradient.
func TestH1(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(1, 8).Draw(t, "ranks")
		m := rapid.IntRange(2*p, 4*p).Draw(t, "microbatches")
		c, f, i, w := drawn(t, p)
		got := timed(t, H1{}, p, m, c)
		for r := range p {
			if want := unit.Duration(p-1) * max(i, f+max(0, i-w)); got.Idle(r) != want {
				t.Fatalf("p=%d m=%d F=%d I=%d W=%d: rank %d is idle for %d, want %d", p, m, f, i, w, r, got.Idle(r), want)
			}
			if kept := got.Peak[r].ActivationKiB + got.Peak[r].WaitingKiB; kept != int64(p) {
				t.Fatalf("p=%d m=%d: rank %d keeps %d, want %d", p, m, r, kept, p)
			}
		}
	})
}

// TestH2: no rank's bubble is above (p-1)(TF+TI-2TW) where TW <= TI, and the worst is that;
// every rank keeps 2p-1 activations.
func TestH2(t *testing.T) {
	for _, times := range [][3]unit.Duration{{10, 10, 10}, {10, 12, 8}, {12, 11, 9}} {
		for p := 1; p <= 8; p++ {
			m := 3 * p
			c := pipeline.Like(p)
			for s := range c.Stages {
				c.Stages[s].Forward, c.Stages[s].Input, c.Stages[s].Weight = times[0], times[1], times[2]
			}
			s, _ := H2{}.Schedule(p, m, nil)
			got, why := s.Time(c)
			if why != "" {
				t.Fatal(why)
			}
			worst, want := unit.Duration(0), unit.Duration(p-1)*(times[0]+times[1]-2*times[2])
			for r := range p {
				worst = max(worst, got.Bubble[r])
				if kept := got.Peak[r].ActivationKiB + got.Peak[r].WaitingKiB; kept != int64(2*p-1) {
					t.Errorf("p=%d: rank %d keeps %d, want %d", p, r, kept, 2*p-1)
				}
			}
			if worst != want {
				t.Errorf("p=%d %v: the worst bubble is %d, want %d", p, times, worst, want)
			}
		}
	}
}
