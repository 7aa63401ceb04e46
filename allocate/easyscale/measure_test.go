package easyscale

import (
	"fmt"
	"math"
	"testing"
)

// The claim, over five draws: the order holds. The ratio of 0.75 does not quite (claim.yaml
// says by how much and why); here it is guarded against getting worse.
func TestClaim(t *testing.T) {
	const draws = 5
	m := map[string]float64{}
	for seed := range uint64(draws) {
		for k, v := range Measure(seed + 1) {
			m[k] += v / draws
		}
	}
	for _, load := range []int{60, 90, 120} {
		jct := func(name string) float64 { return m[fmt.Sprintf("%s_jct_s_load%d", name, load)] }
		if heter, homo, fifo := jct("heter"), jct("homo"), jct("fifo"); heter/homo > .85 || homo > fifo {
			t.Errorf("load %d %%: mean JCT over kinds %.0f s, on one kind %.0f s (ratio %.3f, want at most 0.85), FIFO %.0f s",
				load, heter, homo, heter/homo, fifo)
		}
	}
}

// No decision hands out more than there is, and each job ends.
func TestNobodyOvercommits(t *testing.T) {
	for _, elastic := range []bool{true, false} {
		s := draw(3, .9, elastic)
		decide := s.fifo(jobs)
		if elastic {
			decide = s.elastic(start)
		}
		_, makespan := s.play(func(now float64, active []int, free []int32) []int {
			changed := decide(now, active, free)
			used := make([]int32, len(park))
			for _, j := range active {
				for k, n := range s.tenants[j].Counts {
					used[k] += n
					if n > 0 && s.tenants[j].Kinds&(1<<k) == 0 {
						t.Errorf("job %d is on kind %d", j, k)
					}
				}
			}
			for k := range park {
				if used[k] > park[k] {
					t.Errorf("at %.0f s: %d of %d devices of kind %d", now, used[k], park[k], k)
				}
			}
			return changed
		})
		if math.IsInf(makespan, 1) {
			t.Error("some job never ends")
		}
	}
}
