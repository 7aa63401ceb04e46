package perf

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSpeedRecovers: eight samples with 5 % of noise predict speeds within 10 % on
// average, over configurations as large as those sampled.
func TestSpeedRecovers(t *testing.T) {
	at := map[Form][][2]int{
		Sync:      {{1, 1}, {2, 1}, {4, 2}, {8, 4}, {4, 8}, {8, 1}, {12, 6}, {12, 12}},
		Async:     {{1, 1}, {2, 1}, {4, 2}, {8, 4}, {4, 8}, {8, 1}, {12, 6}, {12, 12}},
		AllReduce: {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {6, 0}, {8, 0}, {10, 0}, {12, 0}},
	}
	for form, sampled := range at {
		var all []float64
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, 2))
			truth := Speed{Form: form, Batch: 256}
			for range form.terms(1, 1, 1) {
				truth.Terms = append(truth.Terms, .02+.2*rng.Float64())
			}
			if form != Async {
				truth.Terms[0] /= 16 // per sample
			}
			var seen []Sample
			for _, c := range sampled {
				seen = append(seen, Sample{c[0], c[1], truth.StepsPerSec(c[0], c[1]) * math.Exp(.05*rng.NormFloat64())})
			}
			m := FitSpeed(form, truth.Batch, seen)
			for w := 1; w <= 12; w++ {
				for p := 1; p <= 12 && (form != AllReduce || p == 1); p++ {
					all = append(all, math.Abs(m.StepsPerSec(w, p)/truth.StepsPerSec(w, p)-1))
				}
			}
			if slices.Min(m.Terms) < 0 {
				t.Fatalf("a negative term: %v", m.Terms)
			}
		}
		slices.Sort(all)
		sum := 0.0
		for _, e := range all {
			sum += e
		}
		mean, tail := sum/float64(len(all)), all[len(all)*9/10]
		t.Logf("form %d: mean error %.3f, nine in ten below %.3f", form, mean, tail)
		if mean > .10 {
			t.Errorf("form %d: mean error %.3f, more than .10", form, mean)
		}
	}
}

// TestNonNegative compares with the best over all sets of unknowns that may be positive.
func TestNonNegative(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		rows, want := make([][]float64, 7), make([]float64, 7)
		for i := range rows {
			for range 4 {
				rows[i] = append(rows[i], rng.NormFloat64())
			}
			want[i] = rng.NormFloat64()
		}
		of := func(x []float64) float64 {
			sum := 0.0
			for i, row := range rows {
				e := want[i]
				for k, v := range row {
					e -= v * x[k]
				}
				sum += e * e
			}
			return sum
		}
		best := of(make([]float64, 4))
		for set := 1; set < 16; set++ {
			in := []bool{set&1 > 0, set&2 > 0, set&4 > 0, set&8 > 0}
			if x := solve(rows, want, []float64{1, 1, 1, 1}, in); slices.Min(x) >= 0 {
				best = min(best, of(x))
			}
		}
		if got := of(nonNegative(rows, want)); got > best+1e-6 {
			t.Fatalf("error %v, the best is %v", got, best)
		}
	}
}
