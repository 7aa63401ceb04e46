// Package gate decides whether something learned may act: only if on cases that it never
// saw it costs less than what is configured, paired case by case, and that is not likely
// to be luck. Costs of different cases differ by orders, so that gains are ratios: what is
// tested is the mean of their logarithms, one-sided, by Student's t.
package gate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Fewest is how many cases a verdict needs, and Chance how likely luck may be at most.
const (
	Fewest = 5
	Chance = .05
)

// Verdict is what the gate says.
type Verdict struct {
	Gain  float64 `json:"gain"` // part of the baseline's cost that is saved, in the geometric mean
	P     float64 `json:"p"`    // how likely luck does as well, if nothing is gained
	Cases int     `json:"cases"`
	Open  bool    `json:"open"` // the learned one may act
}

// Judge compares costs, all positive, of the same cases.
func Judge(learned, baseline []float64) (Verdict, error) {
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
	if v.Cases < Fewest {
		return v, nil
	}
	switch deviation := stat.StdDev(logs, nil); {
	case deviation > 0:
		t := mean / (deviation / math.Sqrt(float64(v.Cases)))
		v.P = 1 - distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(v.Cases - 1)}.CDF(t)
	case mean > 0:
		v.P = 0
	}
	v.Open = v.Gain > 0 && v.P < Chance
	return v, nil
}
