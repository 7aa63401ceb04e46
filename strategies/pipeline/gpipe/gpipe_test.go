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
		{2, 3, []string{"F0 F1 F2 B0 B1 B2", "F0 F1 F2 B0 B1 B2"}},
		{1, 1, []string{"F0 B0"}},
	} {
		for s, ops := range (Ordering{}).Order(c.stages, c.microbatches) {
			if got := strings.Trim(fmt.Sprint(ops), "[]"); got != c.want[s] {
				t.Errorf("%d stages, %d microbatches, stage %d: %s, want %s", c.stages, c.microbatches, s, got, c.want[s])
			}
		}
	}
}
