package rank

import (
	"math"
	"testing"
)

func TestCorrelation(t *testing.T) {
	if got := Correlation([]float64{1, 1}, []float64{1, 2}); !math.IsNaN(got) {
		t.Errorf("without an order: %g", got)
	}
	for _, c := range []struct {
		name        string
		inner, goal []float64
		want        float64
	}{
		{"alike", []float64{1, 10, 100}, []float64{2, 3, 4}, 1},
		{"reversed", []float64{1, 2, 3, 4}, []float64{9, 7, 5, 1}, -1},
		{"one pair swapped: 1 - 6*2/(4*15)", []float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, .8},
		{"ties in one: ranks 0 1.5 1.5 3 beside 0 2 1 3", []float64{1, 20, 3, 400}, []float64{1, 3, 3, 4}, 3 / math.Sqrt(10)},
		{"ties share their rank", []float64{1, 1, 2}, []float64{5, 5, 6}, 1},
	} {
		if got := Correlation(c.inner, c.goal); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}
