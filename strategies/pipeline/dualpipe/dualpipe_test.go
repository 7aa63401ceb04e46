package dualpipe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// TestPublishedOrder is DualPipeV's for two ranks and four microbatches, as its authors' code
// writes it.
func TestPublishedOrder(t *testing.T) {
	s, why := V{}.Schedule(2, 4, nil)
	if why != "" {
		t.Fatal(why)
	}
	for r, want := range []string{
		"0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3& 3B1 3F2& 0B0 3B2 3F3& 0B1 3B3 0I2 0W2 0I3 0W3",
		"1F0 2F0 1F1 2F1 1F2 2B0 2F2& 1B0 1F3& 2B1 2F3& 1B1 2B2 1B2 2I3 1I3 2W3 1W3",
	} {
		if got := strings.Trim(fmt.Sprint(s.Orders[r]), "[]"); got != want {
			t.Errorf("rank %d:\n%s\nwant\n%s", r, got, want)
		}
	}
}

// TestBubble: no rank's bubble is above (PP/2-1)(F&B + B - 3W), and the worst is just that
// where all passes take equally long and none hides another; PP+1 activations are kept.
func TestBubble(t *testing.T) {
	for _, c := range []struct {
		what          string
		ord           pipeline.Ordering
		ranks, stages int
		most          int64
	}{{"both", Both{}, 2, 2, 3}, {"both", Both{}, 4, 4, 5}, {"both", Both{}, 8, 8, 9}, {"v", V{}, 1, 2, 3}, {"v", V{}, 2, 4, 5}, {"v", V{}, 4, 8, 9}, {"v", V{}, 8, 16, 17}} {
		for _, times := range [][3]unit.Duration{{1, 1, 1}, {10, 12, 8}, {7, 9, 9}} {
			for _, m := range []int{2 * c.ranks, 2*c.ranks + 2, 5 * c.ranks / 2 * 2} {
				m = max(m, 2*c.ranks)
				s, why := c.ord.Schedule(c.ranks, m, nil)
				if why != "" {
					t.Fatal(why)
				}
				costs := pipeline.Like(c.stages)
				for i := range costs.Stages {
					costs.Stages[i].Forward, costs.Stages[i].Input, costs.Stages[i].Weight = times[0], times[1], times[2]
				}
				got, why := s.Time(costs)
				if why != "" {
					t.Fatal(why)
				}
				both := times[0] + times[1] + times[2] // one after the other
				want := unit.Duration(c.stages/2-1) * (both + times[1] + times[2] - 3*times[2])
				worst := unit.Duration(0)
				for r := range got.Bubble {
					worst = max(worst, got.Bubble[r])
					if kept := got.Peak[r].ActivationKiB + got.Peak[r].WaitingKiB; kept > c.most {
						t.Errorf("%s, %d ranks, %d microbatches: rank %d keeps %d, want at most %d", c.what, c.ranks, m, r, kept, c.most)
					}
				}
				if worst > want || times[0] == times[1] && times[1] == times[2] && worst != want {
					t.Errorf("%s, %d ranks, %d microbatches, %v: bubble %d, want %d", c.what, c.ranks, m, times, worst, want)
				}
			}
		}
	}
}
