// Package rank compares orders.
package rank

import (
	"cmp"
	"math"
	"slices"
)

// Correlation is Spearman's rank correlation between two figures of the same things,
// as of a strategy's inner score and the goal it stands for: 1 where they order them
// alike, -1 where the one reverses the other. Equal values share the mean of their ranks;
// where all are equal there is no order, and the result is not a number.
func Correlation(inner, goal []float64) float64 {
	x, y := ranks(inner), ranks(goal)
	mean := float64(len(x)-1) / 2
	var xx, yy, xy float64
	for i := range x {
		xx += (x[i] - mean) * (x[i] - mean)
		yy += (y[i] - mean) * (y[i] - mean)
		xy += (x[i] - mean) * (y[i] - mean)
	}
	return xy / math.Sqrt(xx*yy)
}

// ranks are the places of values in ascending order.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
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
