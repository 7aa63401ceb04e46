package solve_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/solve"
)

// TestMatchAgainstBruteForce: the best of all pairings, on small whole weights.
func TestMatchAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(0, 5).Draw(t, "rows"), rapid.IntRange(0, 5).Draw(t, "columns")
		w := make([][]float64, n)
		for i := range w {
			for range m {
				w[i] = append(w[i], float64(rapid.IntRange(-3, 12).Draw(t, "weight")))
			}
		}
		column, total := solve.Match(w)
		sum, used := 0.0, map[int]bool{}
		for i, j := range column {
			if j < 0 {
				continue
			}
			if used[j] || w[i][j] <= 0 {
				t.Fatalf("row %d has column %d, of weight %g, taken: %t", i, j, w[i][j], used[j])
			}
			used[j] = true
			sum += w[i][j]
		}
		var best func(i int, taken uint) float64
		best = func(i int, taken uint) float64 {
			if i == n {
				return 0
			}
			most := best(i+1, taken)
			for j := range m {
				if taken>>j&1 == 0 {
					most = max(most, w[i][j]+best(i+1, taken|1<<j))
				}
			}
			return most
		}
		if want := best(0, 0); sum != total || total != want {
			t.Fatalf("pairs sum to %g, said %g, best %g: %v", sum, total, want, w)
		}
	})
}

// TestChooseAgainstBruteForce: the best of all choices.
func TestChooseAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := int32(rapid.IntRange(-1, 20).Draw(t, "capacity"))
		groups := make([][]solve.Item, rapid.IntRange(0, 5).Draw(t, "groups"))
		for g := range groups {
			for range rapid.IntRange(0, 4).Draw(t, "items") {
				groups[g] = append(groups[g], solve.Item{Weight: int32(rapid.IntRange(-1, 12).Draw(t, "weight")), Value: float64(rapid.IntRange(-2, 10).Draw(t, "value"))})
			}
		}
		item, value := solve.Choose(groups, capacity)
		sum, weight := 0.0, int32(0)
		for g, i := range item {
			if i >= 0 {
				sum, weight = sum+groups[g][i].Value, weight+groups[g][i].Weight
			}
		}
		var best func(g int, left int32) float64
		best = func(g int, left int32) float64 {
			if g == len(groups) {
				return 0
			}
			most := best(g+1, left)
			for _, it := range groups[g] {
				if it.Weight >= 0 && it.Weight <= left {
					most = max(most, it.Value+best(g+1, left-it.Weight))
				}
			}
			return most
		}
		if want := best(0, capacity); sum != value || value != want || weight > max(capacity, 0) {
			t.Fatalf("items are worth %g and weigh %d, said %g, best %g: %v in %d", sum, weight, value, want, groups, capacity)
		}
	})
}
