package zbv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// TestPublishedV is ZBV's order for two ranks and four microbatches.
func TestPublishedV(t *testing.T) {
	s, _ := V{}.Schedule(2, 4, nil)
	for r, want := range []string{
		"0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3",
		"1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3",
	} {
		if got := strings.Trim(fmt.Sprint(s.Orders[r]), "[]"); got != want {
			t.Errorf("rank %d:\n%s\nwant\n%s", r, got, want)
		}
	}
}

// played times a schedule of equal stages, and gives its worst bubble and its highest peak.
func played(o pipeline.Ordering, p, m int, f, i, w unit.Duration) (t pipeline.Timing, bubble unit.Duration, peak int64) {
	t = pipelinetest.Case{Ranks: p, Microbatches: m, Forward: f, Input: i, Weight: w}.Time(o)
	return t, slices.Max(t.Bubble), pipelinetest.Most(t)
}

// TestV: no rank has a bubble where all passes take equally long and there are 2p-1
// microbatches or more, and each keeps 2p chunks; with fewer it still runs.
func TestV(t *testing.T) {
	for p := 1; p <= 16; p++ {
		for _, m := range []int{2*p - 1, 2 * p, 3*p + 1, 4 * p} {
			got, bubble, _ := played(V{}, p, m, 1, 1, 1)
			if bubble != 0 {
				t.Errorf("p=%d m=%d: a bubble of %d", p, m, bubble)
			}
			for r := range p {
				if kept := got.Peak[r].Total(); m > 2*p-1 && kept != int64(2*p) {
					t.Errorf("p=%d m=%d: rank %d keeps %d, want %d", p, m, r, kept, 2*p)
				}
			}
		}
		for m := 1; m < 2*p-1; m++ {
			played(V{}, p, m, 1, 2, 3)
		}
	}
}

// TestVTrap: what the blocks promise holds for passes that take equally long. Where gradients of
// inputs take longer than those of weights, V-Min stands still in every block and loses more with
// every microbatch; ZBV does not.
func TestVTrap(t *testing.T) {
	_, few, _ := played(Min, 4, 16, 10, 15, 5)
	_, many, _ := played(Min, 4, 32, 10, 15, 5)
	_, zbv, _ := played(V{}, 4, 16, 10, 15, 5)
	_, more, _ := played(V{}, 4, 32, 10, 15, 5)
	if few >= many || zbv != more {
		t.Errorf("bubbles of %d and %d, and of ZBV %d and %d", few, many, zbv, more)
	}
}

// TestBlocks: V-Min never keeps more than V-Half, nor that more than ZBV; V-Half keeps p+2
// chunks for even p and p+1 for odd, V-Min a third of 2p and at most 2 more, and their
// bubbles are what a table says below, which the authors' program makes too. Published are half and
// two thirds of 1F1B's.
func TestBlocks(t *testing.T) {
	for p := 1; p <= 24; p++ {
		for _, m := range []int{1, p, 2*p - 1, 2 * p, 4 * p} {
			for _, times := range [][3]unit.Duration{{1, 1, 1}, {10, 12, 8}, {10, 8, 12}, {3, 9, 1}} {
				_, _, zbv := played(V{}, p, m, times[0], times[1], times[2])
				_, _, half := played(Half, p, m, times[0], times[1], times[2])
				_, _, least := played(Min, p, m, times[0], times[1], times[2])
				if least > half || half > zbv {
					t.Errorf("p=%d m=%d: V-Min keeps %d, V-Half %d, ZBV %d", p, m, least, half, zbv)
				}
				if m < 2*p {
					continue
				}
				if want := int64(p + 2 - p%2); p > 1 && half != want {
					t.Errorf("p=%d: V-Half keeps %d, want %d", p, half, want)
				}
				if over := least - int64((2*p+2)/3); p > 1 && (over < 0 || over > 2) {
					t.Errorf("p=%d: V-Min keeps %d, want %d or a little more", p, least, (2*p+2)/3)
				}
			}
		}
	}
	for _, c := range []struct {
		p         int
		half, min unit.Duration // idle, in chunk passes
	}{{2, 1, 3}, {3, 5, 5}, {4, 5, 11}, {5, 11, 15}, {6, 11, 17}, {8, 17, 27}, {9, 23, 29}, {12, 29, 41}, {16, 41, 59}} {
		half, _, _ := played(Half, c.p, 4*c.p, 1, 1, 1)
		least, _, _ := played(Min, c.p, 4*c.p, 1, 1, 1)
		if whole := unit.Duration(6 * (c.p - 1)); 2*half.Idle(0) > whole || 3*least.Idle(0) > 2*whole {
			t.Errorf("p=%d: V-Half is idle for %d, V-Min for %d: more than half and two thirds of %d", c.p, half.Idle(0), least.Idle(0), whole)
		}
		if half.Idle(0) != c.half || least.Idle(0) != c.min {
			t.Errorf("p=%d: V-Half is idle for %d, V-Min for %d, want %d and %d; of 1F1B's %d", c.p, half.Idle(0), least.Idle(0), c.half, c.min, 6*(c.p-1))
		}
	}
}

// BenchmarkHalf is V-Half on 64 ranks with 512 microbatches: 196,608 passes.
func BenchmarkHalf(b *testing.B) {
	for b.Loop() {
		if _, why := Half.Schedule(64, 512, nil); why != "" {
			b.Fatal(why)
		}
	}
}
