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
		{1, 2, []string{"F0 B0 F1 B1"}},
		{3, 4, []string{"F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"}},
		{3, 1, []string{"F0 B0", "F0 B0", "F0 B0"}}, // fewer microbatches than stages
	} {
		for s, ops := range (Ordering{}).Order(c.stages, c.microbatches) {
			if got := strings.Trim(fmt.Sprint(ops), "[]"); got != c.want[s] {
				t.Errorf("%d stages, %d microbatches, stage %d: %s, want %s", c.stages, c.microbatches, s, got, c.want[s])
			}
		}
	}
}
