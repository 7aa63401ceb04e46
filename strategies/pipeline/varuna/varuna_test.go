package varuna

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"pgregory.net/rapid"
)

// TestOrder: the last stage computes nothing again, the first goes ahead until gradients come.
func TestOrder(t *testing.T) {
	s, why := Ordering{}.Schedule(2, 3, nil)
	if why != "" {
		t.Fatal(why)
	}
	for r, want := range []string{"0F0 0F1 0F2 0R0 0I0 0W0 0R1 0I1 0W1 0R2 0I2 0W2", "1F0 1I0 1W0 1F1 1I1 1W1 1F2 1I2 1W2"} {
		if got := strings.Trim(fmt.Sprint(s.Orders[r]), "[]"); got != want {
			t.Errorf("rank %d: %s, want %s", r, got, want)
		}
	}
}

// TestAgainstGPipe: on equal stages it is idle no longer than GPipe that computes again, and keeps
// no more than the inputs of all microbatches and one of them whole.
func TestAgainstGPipe(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p, m := rapid.IntRange(1, 8).Draw(t, "ranks"), rapid.IntRange(1, 24).Draw(t, "microbatches")
		c := pipeline.Like(p)
		f, i, w := rapid.IntRange(1, 50).Draw(t, "forward"), rapid.IntRange(1, 50).Draw(t, "input"), rapid.IntRange(1, 50).Draw(t, "weight")
		for s := range c.Stages {
			c.Stages[s] = pipeline.Stage{Forward: unit.Duration(f), Input: unit.Duration(i), Weight: unit.Duration(w), OutputKiB: 1, ActivationKiB: 10}
		}
		gpipe := pipeline.NewSchedule(p, m, pipeline.Straight(p))
		for r := range p {
			line, mine := gpipe.Line(r), gpipe.Chunks(r)[0]
			for line.Do("F", mine) {
			}
			for range m {
				line.Do("RB", mine)
			}
		}
		s, why := Ordering{}.Schedule(p, m, &c)
		got, again := s.Score(&c)
		base, more := gpipe.Score(&c)
		if why+again+more != "" {
			t.Fatal(why + again + more)
		}
		if got.Makespan > base.Makespan || got.PeakKiB > int64(m+9) {
			t.Fatalf("p=%d m=%d F=%d I=%d W=%d: %+v, GPipe %+v", p, m, f, i, w, got, base)
		}
	})
}
