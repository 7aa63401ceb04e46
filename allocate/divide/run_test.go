package divide_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/allocate/divide"
)

func TestRun(t *testing.T) {
	rate := func(_ int, n int32) float64 { return float64(n) }
	// One unit, the job that came first: the second waits for it.
	first := func(active []int, _ []float64) []int32 {
		shares := make([]int32, len(active))
		shares[0] = 1
		return shares
	}
	// All units to the last, which stops and restarts the first.
	last := func(active []int, _ []float64) []int32 {
		shares := make([]int32, len(active))
		shares[len(active)-1] = 2
		return shares
	}
	none := func(active []int, _ []float64) []int32 { return make([]int32, len(active)) }
	jobs := []divide.Arrival{{At: 1, Work: 10}, {At: 4, Work: 6}}
	for _, test := range []struct {
		name   string
		cost   float64
		shares func([]int, []float64) []int32
		want   [2]float64
	}{
		{"in turn", 5, first, [2]float64{11, 17}},
		// 1..4 does 6 of the first; the second takes 4..7; then 5 s of pause and 4 left at 2.
		{"with a restart", 5, last, [2]float64{14, 7}},
		{"never", 5, none, [2]float64{math.Inf(1), math.Inf(1)}},
	} {
		for _, every := range []float64{0, 0.5} {
			got := divide.Run(jobs, every, divide.Elastic(rate, test.cost, test.shares))
			if got[0] != test.want[0] || got[1] != test.want[1] {
				t.Errorf("%s, every %g: got %v, want %v", test.name, every, got, test.want)
			}
		}
	}
	if got := divide.MeanJCT(jobs, []float64{11, 17}); got != 11.5 {
		t.Errorf("the mean is %g, want 11.5", got)
	}
}
