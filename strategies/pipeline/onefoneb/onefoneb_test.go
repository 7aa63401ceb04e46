package onefoneb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/pipeline"
)

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		stages, microbatches int
		want                 []string
	}{
		{1, 2, []string{"0F0 0B0 0F1 0B1"}},
		{3, 4, []string{"0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3", "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3", "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3"}},
		{3, 1, []string{"0F0 0B0", "1F0 1B0", "2F0 2B0"}}, // fewer microbatches than stages
	} {
		schedule, why := (Ordering{}).Schedule(c.stages, c.microbatches, nil)
		if why += schedule.Check(); why != "" {
			t.Fatal(why)
		}
		for s, ops := range schedule.Orders {
			if got := strings.Trim(fmt.Sprint(ops), "[]"); got != c.want[s] {
				t.Errorf("%d stages, %d microbatches, stage %d: %s, want %s", c.stages, c.microbatches, s, got, c.want[s])
			}
		}
	}
}

// TestLevels: with two ranks a node, a node lets so many microbatches more be under way to the
// next, and the step without jitter takes as long.
func TestLevels(t *testing.T) {
	flat, _ := New(Default()).Schedule(4, 8, nil)
	levels, why := New(Config{Node: 2, Ahead: 2}).Schedule(4, 8, nil)
	if why += levels.Check(); why != "" {
		t.Fatal(why)
	}
	for r, want := range []int{5, 4, 1, 0} {
		ahead := 0
		for levels.Orders[r][ahead+1].Kind == pipeline.Forward {
			ahead++
		}
		if ahead != want {
			t.Errorf("rank %d is %d ahead, want %d: %v", r, ahead, want, levels.Orders[r])
		}
	}
	a, why := flat.Time(pipeline.Like(4))
	b, not := levels.Time(pipeline.Like(4))
	if why+not != "" || a.Makespan != b.Makespan {
		t.Errorf("%v without levels, %v with: %s%s", a.Makespan, b.Makespan, why, not)
	}
}
