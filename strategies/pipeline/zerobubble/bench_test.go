package zerobubble

import (
	"fmt"
	"testing"

	"github.com/musterdl/muster/pipeline"
)

// BenchmarkAuto is the automatic order of equal stages with links, all variants.
func BenchmarkAuto(b *testing.B) {
	for _, size := range [][2]int{{8, 32}, {16, 64}, {64, 512}} {
		c := pipeline.Like(size[0])
		for i := range c.Stages {
			c.Stages[i].Forward, c.Stages[i].Input, c.Stages[i].Weight = 100, 110, 90
		}
		c.Latency = 5
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			for b.Loop() {
				if _, why := New(Default()).Schedule(size[0], size[1], &c); why != "" {
					b.Fatal(why)
				}
			}
		})
	}
}
