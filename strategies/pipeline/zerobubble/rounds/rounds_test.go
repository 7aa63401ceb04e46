package rounds_test

import (
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble/rounds"
)

// TestRounds: over links that nothing fills each variant ends when it says, and no rank keeps more than it
// may; where ranks may keep less than those behind them there may be no order, and then it says so.
func TestRounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	written := 0
	for range 200 {
		p := 1 + r.IntN(7)
		m, c, most := 1+r.IntN(4*p), pipeline.Like(p), make([]int, p)
		for s := range c.Stages {
			pass := func() unit.Duration { return unit.Duration(1 + r.IntN(50)) }
			c.Stages[s] = pipeline.Stage{Forward: pass(), Input: pass(), Weight: pass(), ActivationKiB: 1}
			most[s] = 1 + r.IntN(2*p)
		}
		c.Latency = unit.Duration(r.IntN(10))
		for v := range rounds.Variants {
			s, end, fits := rounds.Schedule(v, most, m, &c, unit.Forever)
			if !fits {
				continue
			}
			got, why := s.Time(c)
			if why != "" || got.Makespan != end.Sub(0) {
				t.Fatalf("variant %d of %d ranks and %d microbatches: %d, says %d (%s)", v, p, m, got.Makespan, end, why)
			}
			for k, peak := range got.Peak {
				if int(peak.Total()) > most[k] {
					t.Fatalf("variant %d: rank %d keeps %d of %d", v, k, peak.Total(), most[k])
				}
			}
			if _, _, again := rounds.Schedule(v, most, m, &c, got.Makespan-1); again {
				t.Fatalf("variant %d takes %d and fits in less", v, got.Makespan)
			}
			written++
		}
	}
	if written < 400 {
		t.Errorf("%d of 1600 have an order", written)
	}
}
