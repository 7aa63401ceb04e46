package liquid

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// batch is the problem of several gangs at once, and the memory to search in.
type batch struct {
	sites []Site
	gangs []Gang
	spot  *spot
	rng   *rand.Rand
	work  int // sites that may still be looked at
	tasks int
}

// parent is one placement of all gangs: sites by gang and task, the sum of their costs.
type parent struct {
	where [][]int32
	cost  float64
}

// Batch places several gangs at once: greedily in their order, and then by a genetic
// search from there, until so many sites have been looked at in trials. What it returns
// costs no more than the greedy placement. It reports false if the greedy one does not
// hold all gangs. A site's room is in tasks, the same for all gangs.
func Batch(sites []Site, gangs []Gang, w Weights, work int, seed uint64) (where [][]int32, cost float64, ok bool) {
	b := &batch{sites: slices.Clone(sites), gangs: gangs, rng: rand.New(rand.NewPCG(seed, 0)), work: work}
	b.spot = newSpot(b.sites, w)
	for i := range gangs {
		b.tasks += int(gangs[i].Tasks)
	}
	first := make([][]int32, len(gangs))
	for i := range gangs {
		first[i] = slices.Repeat([]int32{-1}, int(gangs[i].Tasks))
	}
	if !b.fill(first, false) {
		return nil, 0, false
	}
	best := parent{first, b.evaluate(first)}
	if work > 0 && len(gangs) > 0 {
		best = b.search(best)
	}
	return best.where, best.cost, true
}

// search keeps a population of 30 and half a place for each task, a tenth of it the
// greedy placement and the others random, and stops when 30 and one for each task
// generations have found nothing better, or the work is done.
func (b *batch) search(greedy parent) parent {
	size, tenth := 30+b.tasks/2, (30+b.tasks/2+9)/10
	population := make([]parent, 0, size)
	for i := range size {
		p := greedy
		if i >= tenth {
			if b.work <= 0 {
				break
			}
			p.where = b.empty()
			if !b.fill(p.where, true) {
				continue
			}
			p.cost = b.evaluate(p.where)
		}
		population = append(population, p)
	}
	order := func(x, y parent) int { return cmp.Compare(x.cost, y.cost) }
	slices.SortStableFunc(population, order)
	for stale := 0; stale < 30+b.tasks && b.work > 0; stale++ {
		was := population[0].cost
		for range size / 2 {
			if b.work <= 0 {
				break
			}
			// The better of two drawn, twice.
			x, y := b.tournament(len(population)), b.tournament(len(population))
			if child, ok := b.child(&population[x], &population[y]); ok {
				population = append(population, child)
			}
		}
		slices.SortStableFunc(population, order)
		population = population[:min(len(population), size)]
		if population[0].cost < was-1e-9 {
			stale = -1
		}
	}
	return population[0]
}

func (b *batch) tournament(n int) int { return min(b.rng.IntN(n), b.rng.IntN(n)) }

func (b *batch) empty() [][]int32 {
	where := make([][]int32, len(b.gangs))
	for i := range where {
		where[i] = slices.Repeat([]int32{-1}, int(b.gangs[i].Tasks))
	}
	return where
}

// child takes over x, with the content of one site as y has it; or, as often, with one
// of its own sites emptied. What then has no place is placed greedily.
func (b *batch) child(x, y *parent) (parent, bool) {
	c := parent{where: make([][]int32, len(x.where))}
	for i := range x.where {
		c.where[i] = slices.Clone(x.where[i])
	}
	from := x
	crossover := b.rng.IntN(2) == 0
	if crossover {
		from = y
	}
	gang := b.rng.IntN(len(b.gangs))
	site := from.where[gang][b.rng.IntN(len(from.where[gang]))]
	for i := range c.where {
		for t := range c.where[i] {
			if c.where[i][t] == site {
				c.where[i][t] = -1
			}
			if crossover && y.where[i][t] == site {
				c.where[i][t] = site
			}
		}
	}
	if !b.fill(c.where, !crossover) {
		return c, false
	}
	c.cost = b.evaluate(c.where)
	return c, true
}

// fill gives every task without a place one: where the gang's total cost grows least or,
// shaken, first a random place for one of its tasks. It reports false where there is no
// room for all.
func (b *batch) fill(where [][]int32, shaken bool) bool {
	room := make([]int32, len(b.sites))
	for i := range b.sites {
		room[i] = b.sites[i].Room
	}
	for i := range where {
		for _, site := range where[i] {
			if site >= 0 {
				room[site]--
			}
		}
	}
	order := make([]int, len(where))
	for i := range order {
		order[i] = i
	}
	if shaken {
		b.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, i := range order {
		if slices.Contains(where[i], -1) && !b.fillGang(i, where[i], room, shaken) {
			return false
		}
	}
	return true
}

func (b *batch) fillGang(i int, where, room []int32, shaken bool) bool {
	g := &b.gangs[i]
	sites := slices.Clone(b.sites)
	b.work -= len(sites)
	for s := range sites {
		sites[s].Busy += sites[s].Room - room[s]
		sites[s].Room = room[s]
	}
	look := candidates(sites, g.Tasks, nil)
	b.spot.sites = sites
	defer func() { b.spot.sites = b.sites }()
	b.spot.begin(g)
	for task, site := range where {
		if site >= 0 {
			b.spot.add(int32(task), site)
		}
	}
	for _, task := range g.order(nil) {
		if where[task] >= 0 {
			continue
		}
		b.work -= len(look)
		best := b.bestSite(task, look, room)
		if shaken && len(look) > 0 {
			if site := look[b.rng.IntN(len(look))]; room[site] > 0 {
				best = site
			}
			shaken = false
		}
		if best < 0 {
			return false
		}
		where[task] = best
		room[best]--
		b.spot.add(task, best)
	}
	return true
}

func (b *batch) bestSite(task int32, look, room []int32) int32 {
	best, least := int32(-1), 0.0
	for _, site := range look {
		if room[site] <= 0 {
			continue
		}
		if c := b.spot.total(task, site); best < 0 || c < least {
			best, least = site, c
		}
	}
	return best
}

func (b *batch) evaluate(where [][]int32) (sum float64) {
	for i := range where {
		sum += b.spot.cost(&b.gangs[i], where[i])
	}
	return sum
}
