package share

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/model/queue"
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
	past         int64 // it has had so much of it before
	got          int64
	open         bool // it would have taken more
}

// fill deals total out by weighted max-min: what each got and had in the past, per weight,
// rises alike from where it stands until its room is full. It returns what the open ones
// divided, their past included, and their weights.
func fill(total int64, all []claimant) (divided, weights int64) {
	order := make([]mark, 0, 2*len(all))
	for i := range all {
		if c := &all[i]; c.room > 0 {
			order = append(order, mark{i, c.past, c.weight, false}, mark{i, c.past + c.room, c.weight, true})
		}
	}
	slices.SortStableFunc(order, func(a, b mark) int { return queue.CompareProducts(a.had, b.weight, b.had, a.weight) })
	for _, k := range order {
		c := &all[k.of]
		if weights > 0 && queue.CompareProducts(k.had, weights, total, k.weight) > 0 {
			break // the level stays below where this one joins or is full
		}
		if c.open = !k.full; k.full {
			c.got = c.room
			total -= c.past + c.room
			weights -= c.weight
		} else {
			total += c.past
			weights += c.weight
		}
	}
	parts := make([]int64, len(all))
	for i := range all {
		if all[i].open {
			parts[i] = all[i].weight
		}
	}
	for i, part := range Split(total, parts) {
		if all[i].open {
			all[i].got = part - all[i].past
		}
	}
	return total, weights
}

// mark is a level, what a claimant had over its weight, at which it joins or is full.
type mark struct {
	of          int
	had, weight int64
	full        bool
}
