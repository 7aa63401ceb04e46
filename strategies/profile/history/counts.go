package history

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// counts is a histogram of run times in sixteen steps per doubling: small, and the
// same whatever order they come in. Quantiles are right within a thirty-second.
type counts struct {
	steps []step // ascending, those that occur
	total int
}

type step struct {
	index int32
	count int32
}

// perDoubling is the base-two logarithm of the steps per doubling.
const perDoubling = 4

func (c *counts) add(d unit.Duration) {
	index := stepOf(d)
	i, found := slices.BinarySearchFunc(c.steps, index, func(s step, x int32) int { return cmp.Compare(s.index, x) })
	if !found {
		c.steps = slices.Insert(c.steps, i, step{index: index})
	}
	c.steps[i].count++
	c.total++
}

// quantile is the run time that a part q of the jobs did not exceed.
func (c *counts) quantile(q float64) unit.Duration {
	left := max(1, int(math.Ceil(q*float64(c.total))))
	for _, s := range c.steps {
		if left -= int(s.count); left <= 0 {
			return middle(s.index)
		}
	}
	return 0
}

// stepOf is the step that a duration falls into: those below two doublings' worth of
// steps are their own, later ones are the leading bits of the number.
func stepOf(d unit.Duration) int32 {
	x := uint64(max(1, d))
	shift := max(0, bits.Len64(x)-perDoubling-1)
	return int32(shift<<perDoubling) + int32(x>>shift)
}

// middle is the middle of a step.
func middle(index int32) unit.Duration {
	shift := max(0, index>>perDoubling-1)
	low := int64(index-shift<<perDoubling) << shift
	return unit.Duration(low + (int64(1)<<shift)/2)
}
