package solve

import "math"

// Match pairs rows with columns of a matrix so that the sum of the weights of the
// pairs is the largest, by the Hungarian method in O(rows^2 columns), or columns^2
// rows where those are fewer. A row or column may stay alone, and does so rather than
// form a pair of weight 0 or less, so such a weight also says that a pair cannot be.
// It returns every row's column, -1 for none, and the sum.
func Match(weight [][]float64) (column []int, total float64) {
	n := len(weight)
	column = make([]int, n)
	if n == 0 {
		return column, 0
	}
	for i := range column {
		column[i] = -1
	}
	m := len(weight[0])
	at := func(i, j int) float64 { return -max(weight[i][j], 0) }
	turned := n > m
	if turned {
		n, m = m, n
		at = func(i, j int) float64 { return -max(weight[j][i], 0) }
	}
	for j, i := range assign(n, m, at) {
		r, c := i, j
		if turned {
			r, c = j, i
		}
		if i >= 0 && weight[r][c] > 0 {
			column[r] = c
		}
	}
	for i, j := range column {
		if j >= 0 {
			total += weight[i][j]
		}
	}
	return column, total
}

// assign gives each of n rows its own of m >= n columns at the smallest cost and
// returns every column's row, -1 for none. Rows enter one by one; each time the
// cheapest augmenting path is found under prices that keep all reduced costs
// non-negative. Row n and column m are the ends of the path that do not exist.
func assign(n, m int, cost func(i, j int) float64) []int {
	rowPrice, columnPrice := make([]float64, n+1), make([]float64, m+1)
	row, back := make([]int, m+1), make([]int, m+1)
	for j := range row {
		row[j] = -1
	}
	least, seen := make([]float64, m), make([]bool, m+1)
	for i := range n {
		for j := range m {
			least[j], seen[j] = math.Inf(1), false
		}
		seen[m] = false
		row[m] = i
		j := m
		for row[j] >= 0 {
			seen[j] = true
			step, next := math.Inf(1), -1
			for k := range m {
				if seen[k] {
					continue
				}
				if c := cost(row[j], k) - rowPrice[row[j]] - columnPrice[k]; c < least[k] {
					least[k], back[k] = c, j
				}
				if least[k] < step {
					step, next = least[k], k
				}
			}
			for k := range m + 1 {
				if seen[k] {
					rowPrice[row[k]] += step
					columnPrice[k] -= step
				} else if k < m {
					least[k] -= step
				}
			}
			j = next
		}
		for j != m {
			row[j] = row[back[j]]
			j = back[j]
		}
	}
	return row[:m]
}
