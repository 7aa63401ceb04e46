package mlfs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// fewest is how many cases a verdict needs, and chance how likely luck may be at most.
const (
	fewest = 5
	chance = .05
)

// judge decides whether something learned may act: only if on cases that it never saw it
// costs less than what is configured, paired case by case, and that is not likely to be
// luck. Costs of different cases differ by orders, so that gains are ratios: what is
// tested is the mean of their logarithms, one-sided, by Student's t.
func judge(learned, baseline []float64) (Verdict, error) {
	if len(learned) != len(baseline) {
		return Verdict{}, fmt.Errorf("%d costs beside %d of the baseline: they must be of the same cases", len(learned), len(baseline))
	}
	logs := make([]float64, len(learned))
	for i := range logs {
		if !(learned[i] > 0) || !(baseline[i] > 0) {
			return Verdict{}, fmt.Errorf("case %d costs %g, of the baseline %g: costs must be positive", i, learned[i], baseline[i])
		}
		logs[i] = math.Log(baseline[i] / learned[i])
	}
	v := Verdict{P: 1, Cases: len(logs)}
	if v.Cases == 0 {
		return v, nil
	}
	mean := stat.Mean(logs, nil)
	v.Gain = 1 - math.Exp(-mean)
	if v.Cases < fewest {
		return v, nil
	}
	switch deviation := stat.StdDev(logs, nil); {
	case deviation > 0:
		t := mean / (deviation / math.Sqrt(float64(v.Cases)))
		v.P = 1 - distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(v.Cases - 1)}.CDF(t)
	case mean > 0:
		v.P = 0
	}
	v.Open = v.Gain > 0 && v.P < chance
	return v, nil
}

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
			v, err := judge(pairs(20, test.part, seed))
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

func TestJudgeAtTheEdges(t *testing.T) {
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
		v, err := judge(test.learned, test.baseline)
		if err != nil || math.Abs(v.Gain-test.gain) > 1e-12 || v.Open != test.open {
			t.Errorf("%v beside %v: %+v, %v", test.learned, test.baseline, v, err)
		}
	}
	for _, bad := range [][2][]float64{{{1}, nil}, {{0}, {1}}, {{1}, {math.NaN()}}} {
		if _, err := judge(bad[0], bad[1]); err == nil {
			t.Errorf("%v is judged", bad)
		}
	}
}
