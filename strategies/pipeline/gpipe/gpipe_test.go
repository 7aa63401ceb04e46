package gpipe

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
		{2, 3, []string{"0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"}},
		{1, 1, []string{"0F0 0B0"}},
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
