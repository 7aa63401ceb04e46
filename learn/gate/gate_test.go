package gate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// pairs draws costs over three orders of magnitude, and what is learned as the given part
// of them with a scatter.
func pairs(n int, part float64, seed uint64) (learned, baseline []float64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		b := math.Exp(3 * rng.NormFloat64())
		baseline = append(baseline, b)
		learned = append(learned, b*part*math.Exp(.1*rng.NormFloat64()))
	}
	return learned, baseline
}

// What gains nothing is let through by chance one time in twenty, what gains a tenth
// nearly always, and what loses never.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		part        float64
		least, most int // of 1000
	}{{1, 30, 70}, {.9, 970, 1000}, {1.05, 0, 3}} {
		open := 0
		for seed := range uint64(1000) {
			v, err := Judge(pairs(20, test.part, seed))
			if err != nil {
				t.Fatal(err)
			}
			if v.Open {
				open++
			}
		}
		if open < test.least || open > test.most {
			t.Errorf("of what costs %g of the baseline %d of 1000 pass, expected %d to %d", test.part, open, test.least, test.most)
		}
	}
}

func TestEdges(t *testing.T) {
	for _, test := range []struct {
		learned, baseline []float64
		gain              float64
		open              bool
	}{
		{[]float64{1, 1, 1, 1, 1}, []float64{2, 2, 2, 2, 2}, .5, true},
		{[]float64{2, 2, 2, 2, 2}, []float64{2, 2, 2, 2, 2}, 0, false}, // a tie
		{[]float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}, .5, false},      // too few
		{nil, nil, 0, false},
	} {
		v, err := Judge(test.learned, test.baseline)
		if err != nil || math.Abs(v.Gain-test.gain) > 1e-12 || v.Open != test.open {
			t.Errorf("%v beside %v: %+v, %v", test.learned, test.baseline, v, err)
		}
	}
	for _, bad := range [][2][]float64{{{1}, nil}, {{0}, {1}}, {{1}, {math.NaN()}}} {
		if _, err := Judge(bad[0], bad[1]); err == nil {
			t.Errorf("%v is judged", bad)
		}
	}
}
