package assign

import (
	"slices"
	"sort"
)

// Bottleneck pairs each row with one column so that the greatest cost of a pair is as small as can
// be. It returns that cost and the column of each row.
func Bottleneck(cost [][]float64) (greatest float64, column []int) {
	var all []float64
	for _, row := range cost {
		all = append(all, row...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	at := sort.Search(len(all), func(i int) bool { return within(cost, all[i]) != nil })
	if at == len(all) {
		return 0, nil // of no rows
	}
	return all[at], within(cost, all[at])
}

// within pairs row after row, where those before make room if they can (augmenting paths): it pairs all, no pair of greater cost than the limit; or returns nil.
func within(cost [][]float64, limit float64) []int {
	n := len(cost)
	row, column := slices.Repeat([]int{-1}, n), make([]int, n)
	tried := make([]bool, n)
	var find func(r int) bool
	find = func(r int) bool {
		for c := range n {
			if cost[r][c] > limit || tried[c] {
				continue
			}
			tried[c] = true
			if row[c] < 0 || find(row[c]) {
				row[c], column[r] = r, c
				return true
			}
		}
		return false
	}
	for r := range n {
		clear(tried)
		if !find(r) {
			return nil
		}
	}
	return column
}
