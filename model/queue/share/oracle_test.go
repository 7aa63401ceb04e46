package share

import (
	"math/big"

	"github.com/musterdl/muster/model/queue"
)

// oracle deals out in exact fractions, by raising a common level from one event to
// the next; it shares no step with the code it judges.
type oracle struct {
	in       Input
	children [][]int
}

func (o *oracle) amount(list []queue.Amount, missing *big.Rat) *big.Rat {
	if len(list) == 0 {
		return missing
	}
	return big.NewRat(list[0].Milli, 1)
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func most(a, b *big.Rat) *big.Rat {
	return new(big.Rat).Neg(least(new(big.Rat).Neg(a), new(big.Rat).Neg(b)))
}

// party is what a queue, or the jobs directly in it, brings to the table.
type party struct {
	queue               int // -1 for jobs directly in the parent
	weight, priority    int64
	first, need, wanted *big.Rat
	past                *big.Rat // used before, beyond the guarantee
}

func (o *oracle) demand(i int) int64 {
	sum := o.in.Demand[i][0]
	for _, c := range o.children[i] {
		sum += o.demand(c)
	}
	return sum
}

func (o *oracle) past(i int) int64 {
	sum := o.in.Past[i]
	for _, c := range o.children[i] {
		sum += o.past(c)
	}
	return sum
}

func (o *oracle) guarantee(i int) *big.Rat {
	sum := new(big.Rat)
	for _, c := range o.children[i] {
		sum.Add(sum, o.guarantee(c))
	}
	return most(sum, o.amount(o.in.Tree.Queues[i].Guarantee, sum))
}

func (o *oracle) ceiling(i int) *big.Rat {
	q := o.in.Tree.Queues[i]
	infinite := big.NewRat(1<<60, 1)
	return least(o.amount(q.Limit, infinite), new(big.Rat).Add(o.guarantee(i), o.amount(q.Borrow, infinite)))
}

func (o *oracle) party(i int) party {
	q := o.in.Tree.Queues[i]
	p := party{queue: i, weight: int64(q.Weight), priority: int64(q.Priority), first: new(big.Rat), need: new(big.Rat)}
	p.past = most(new(big.Rat), new(big.Rat).Sub(big.NewRat(o.past(i), 1), o.guarantee(i)))
	ceiling, capacity := o.ceiling(i), big.NewRat(o.in.Capacity[0], 1)
	keep := least(least(o.amount(q.Keep, new(big.Rat)), o.guarantee(i)), ceiling)
	if len(o.children[i]) == 0 {
		p.wanted = least(least(big.NewRat(o.demand(i), 1), ceiling), capacity)
		p.first = most(keep, least(o.guarantee(i), p.wanted))
		p.need = most(p.wanted, p.first)
		return p
	}
	p.wanted = new(big.Rat)
	for _, c := range o.table(i) {
		p.first = new(big.Rat).Add(p.first, c.first)
		p.need = new(big.Rat).Add(p.need, c.need)
		p.wanted.Add(p.wanted, c.wanted)
	}
	total := p.wanted
	p.wanted = least(least(total, ceiling), capacity)
	if total.Cmp(ceiling) > 0 { // the limit over all models has been used up
		ceiling = least(ceiling, most(p.wanted, new(big.Rat)))
	}
	p.first = most(p.first, keep)
	if len(q.Guarantee) > 0 {
		p.first = most(p.first, least(o.guarantee(i), p.need))
	}
	p.first = least(p.first, ceiling)
	p.need = least(ceiling, most(p.need, p.first))
	return p
}

// table lists the parties below a queue.
func (o *oracle) table(i int) []party {
	var all []party
	for _, c := range o.children[i] {
		all = append(all, o.party(c))
	}
	own := least(big.NewRat(o.in.Demand[i][0], 1), big.NewRat(o.in.Capacity[0], 1))
	return append(all, party{queue: -1, weight: 1000, first: new(big.Rat), need: own, wanted: own, past: big.NewRat(o.in.Past[i], 1)})
}

// dealExactly returns what each party gets of pool.
func dealExactly(pool *big.Rat, all []party) []*big.Rat {
	got := make([]*big.Rat, len(all))
	sum := new(big.Rat)
	for _, p := range all {
		sum.Add(sum, p.first)
	}
	left := new(big.Rat).Sub(pool, sum)
	for i, p := range all {
		got[i] = new(big.Rat).Set(p.first)
		if left.Sign() < 0 {
			got[i].Mul(got[i], pool).Quo(got[i], sum)
		}
	}
	level := func(i int) *big.Rat { // what it had beyond its first part, now and in the past, by weight
		had := new(big.Rat).Sub(got[i], all[i].first)
		return had.Add(had, all[i].past).Quo(had, big.NewRat(all[i].weight, 1))
	}
	for priority := int64(1); priority >= 0; priority-- {
		for left.Sign() > 0 {
			var open []int // at the lowest level
			var next *big.Rat
			weights := new(big.Rat)
			for i, p := range all {
				if p.priority != priority || got[i].Cmp(p.need) >= 0 {
					continue
				}
				if len(open) > 0 && level(i).Cmp(level(open[0])) > 0 {
					if next == nil || level(i).Cmp(next) < 0 {
						next = level(i)
					}
					continue
				}
				if len(open) > 0 && level(i).Cmp(level(open[0])) < 0 {
					if next == nil || level(open[0]).Cmp(next) < 0 {
						next = level(open[0])
					}
					open, weights = nil, new(big.Rat)
				}
				open = append(open, i)
				weights.Add(weights, big.NewRat(p.weight, 1))
			}
			if len(open) == 0 {
				break
			}
			rise := new(big.Rat).Quo(left, weights)
			if next != nil {
				rise = least(rise, new(big.Rat).Sub(next, level(open[0])))
			}
			for _, i := range open {
				room := new(big.Rat).Sub(all[i].need, got[i])
				rise = least(rise, room.Quo(room, big.NewRat(all[i].weight, 1)))
			}
			for _, i := range open {
				part := new(big.Rat).Mul(rise, big.NewRat(all[i].weight, 1))
				got[i].Add(got[i], part)
				left.Sub(left, part)
			}
		}
	}
	return got
}

func (o *oracle) run(i int, pool *big.Rat, deserved []*big.Rat) {
	if len(o.children[i]) == 0 {
		deserved[i] = least(pool, o.party(i).wanted)
		return
	}
	table := o.table(i)
	deserved[i] = new(big.Rat)
	for k, got := range dealExactly(pool, table) {
		if c := table[k].queue; c >= 0 {
			o.run(c, got, deserved)
			deserved[i].Add(deserved[i], deserved[c])
		} else {
			deserved[i].Add(deserved[i], least(got, table[k].wanted))
		}
	}
}

func bruteForce(in Input) []*big.Rat {
	o := &oracle{in: in, children: make([][]int, len(in.Tree.Queues))}
	for i, q := range in.Tree.Queues {
		if i > 0 {
			o.children[q.Parent] = append(o.children[q.Parent], i)
		}
	}
	deserved := make([]*big.Rat, len(in.Tree.Queues))
	o.run(0, least(big.NewRat(in.Capacity[0], 1), o.party(0).need), deserved)
	return deserved
}
