package strategy

import (
	"slices"

	"gonum.org/v1/gonum/stat"
)

// RankCorrelation is Spearman's rank correlation between a strategy's inner score and the
// goal it stands for, of the same alternatives: 1 where they order them alike, -1 where
// the one reverses the other. Equal values share the mean of their ranks.
func RankCorrelation(inner, goal []float64) float64 {
	return stat.Correlation(ranks(inner), ranks(goal), nil)
}

// ranks are the places of values in ascending order.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	list := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			list[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return list
}
