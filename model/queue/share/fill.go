package share

import (
	"cmp"
	"math/bits"
	"slices"
)

// Split divides total in proportion to weights, in whole numbers by largest
// remainder; equal remainders go to the earlier. Without weights nobody gets any.
func Split(total int64, weights []int64) []int64 {
	parts := make([]int64, len(weights))
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	if sum == 0 || total <= 0 {
		return parts
	}
	left := total
	order := make([]int, 0, len(weights))
	remainders := make([]uint64, len(weights))
	for i, w := range weights {
		high, low := bits.Mul64(uint64(total), uint64(w))
		part, remainder := bits.Div64(high, low, sum)
		parts[i], remainders[i] = int64(part), remainder
		left -= int64(part)
		if remainder > 0 {
			order = append(order, i)
		}
	}
	if left > 0 {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
		for _, i := range order[:left] {
			parts[i]++
		}
	}
	return parts
}

// claimant is one of those between whom something is dealt out.
type claimant struct {
	weight, room int64 // room is the most it takes
	got          int64
	open         bool // it would have taken more
}

// fill deals total out by weighted max-min: what each gets per weight rises alike
// until its room is full. It returns what the open ones divided and their weights.
func fill(total int64, all []claimant) (divided, weights int64) {
	var order []int
	for i := range all {
		if all[i].room > 0 {
			order = append(order, i)
			weights += all[i].weight
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return compareProducts(all[a].room, all[b].weight, all[b].room, all[a].weight)
	})
	for k, i := range order {
		c := &all[i]
		if compareProducts(c.room, weights, total, c.weight) > 0 {
			open := order[k:]
			parts := make([]int64, len(open))
			for j, o := range open {
				parts[j] = all[o].weight
			}
			for j, part := range Split(total, parts) {
				all[open[j]].got, all[open[j]].open = part, true
			}
			return total, weights
		}
		c.got = c.room
		total -= c.room
		weights -= c.weight
	}
	return total, 0
}

// compareProducts compares a*b with c*d, none of them negative.
func compareProducts(a, b, c, d int64) int {
	highAB, lowAB := bits.Mul64(uint64(a), uint64(b))
	highCD, lowCD := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(highAB, highCD), cmp.Compare(lowAB, lowCD))
}
