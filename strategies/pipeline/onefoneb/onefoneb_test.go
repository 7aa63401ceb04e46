package onefoneb

import (
	"fmt"
	"strings"
	"testing"
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
