package victims

import (
	"cmp"
	"math/bits"
	"slices"
)

// exactUpTo is for how many candidates all sets are looked at.
const exactUpTo = 10

// Cheapest displaces the set of least total price; of equal prices the one with the
// fewest victims, since every displacement disturbs somebody even where checkpoints
// make it free, and prices are often 0; and of those the one with the later jobs,
// compared from the latest, so that equal jobs give way in the reverse of the order
// they came in and the oldest is not stopped again and again.
//
// Up to ten candidates that is the best of all sets that try accepts, whatever try
// is: at most 1,024 calls, and none for a set that cannot be enough. Above it is a
// heuristic with at most 64 calls; see approximate. Its fields are scratch.
type Cheapest struct {
	ledger  ledger
	subsets []subset
	pool    []int32
	chosen  []int
	greedy  greedy
}

var _ Chooser = (*Cheapest)(nil)

// subset is some of a pool of candidates: bit i stands for pool[i], which is sorted
// by job, so that of two with equally many bits the larger has the later jobs.
type subset struct {
	price int64
	mask  uint32
}

func (s subset) compare(o subset) int {
	return cmp.Or(cmp.Compare(s.price, o.price), bits.OnesCount32(s.mask)-bits.OnesCount32(o.mask), cmp.Compare(o.mask, s.mask))
}

// Choose chooses the victims.
func (c *Cheapest) Choose(in Input, try func(chosen []int) bool) ([]int, bool) {
	c.ledger.load(&in)
	if len(in.Candidates) > exactUpTo {
		return c.approximate(&in, try)
	}
	c.pool = c.pool[:0]
	for i := range in.Candidates {
		c.pool = append(c.pool, int32(i))
	}
	sortByJob(&in, c.pool)
	c.subsets = c.subsets[:0]
	c.ledger.each(&in, c.pool, c.ledger.enough, func(s subset) { c.subsets = append(c.subsets, s) })
	slices.SortFunc(c.subsets, subset.compare)
	for _, s := range c.subsets {
		c.chosen = c.chosen[:0]
		for i, candidate := range c.pool {
			if s.mask&(1<<i) != 0 {
				c.chosen = append(c.chosen, int(candidate))
			}
		}
		slices.Sort(c.chosen)
		if try(c.chosen) {
			return c.chosen, true
		}
	}
	return nil, false
}

func sortByJob(in *Input, pool []int32) {
	slices.SortFunc(pool, func(a, b int32) int { return cmp.Compare(in.Candidates[a].Job, in.Candidates[b].Job) })
}

// each yields every subset of a pool that is enough together with those already
// gone. It goes from one to the next by a single candidate, as the Gray code does.
func (l *ledger) each(in *Input, pool []int32, enough func() bool, yield func(subset)) {
	mask := uint32(0)
	for i := uint32(0); ; {
		if enough() {
			yield(subset{l.price(in, pool, mask), mask})
		}
		if i++; i == 1<<len(pool) {
			break
		}
		bit := bits.TrailingZeros32(i)
		mask ^= 1 << bit
		l.toggle(pool[bit])
	}
	for i, candidate := range pool {
		if mask&(1<<i) != 0 {
			l.toggle(candidate)
		}
	}
}

func (l *ledger) price(in *Input, pool []int32, mask uint32) (sum int64) {
	for ; mask != 0; mask &= mask - 1 {
		sum = add(sum, in.Candidates[pool[bits.TrailingZeros32(mask)]].Price)
	}
	return sum
}
