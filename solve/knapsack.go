package solve

// Item is one choice of a group: what it weighs and what it is worth.
type Item struct {
	Weight int32
	Value  float64
}

// Choose solves the multiple-choice knapsack: at most one item of every group, no
// more than capacity in weight together, the most in value; by dynamic programming in
// O(items times capacity). Items of negative weight or of no positive value are never
// chosen. It returns every group's item, -1 for none, and the value. Of equal choices
// the later groups take the lighter, then the earlier item.
func Choose(groups [][]Item, capacity int32) (item []int, value float64) {
	item = make([]int, len(groups))
	for g := range item {
		item[g] = -1
	}
	if capacity < 0 {
		return item, 0
	}
	// best[c] is the most value of the groups so far within weight c; took[g][c] is the
	// item of group g in it.
	best, next := make([]float64, capacity+1), make([]float64, capacity+1)
	took := make([][]int32, len(groups))
	for g, items := range groups {
		took[g] = make([]int32, capacity+1)
		for c := range best {
			next[c], took[g][c] = best[c], -1
			for i, it := range items {
				left := c - int(it.Weight)
				if it.Weight < 0 || left < 0 || it.Value <= 0 {
					continue
				}
				v := best[left] + it.Value
				lighter := took[g][c] >= 0 && it.Weight < items[took[g][c]].Weight
				if v > next[c] || v == next[c] && lighter {
					next[c], took[g][c] = v, int32(i)
				}
			}
		}
		best, next = next, best
	}
	c := capacity
	for g := len(groups) - 1; g >= 0; g-- {
		if i := took[g][c]; i >= 0 {
			item[g] = int(i)
			c -= groups[g][i].Weight
		}
	}
	return item, best[capacity]
}
