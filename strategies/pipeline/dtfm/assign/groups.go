// Package assign puts peers that are not equally far from each other into groups, pairs those of
// two groups, and orders the groups.
package assign

import (
	"math/rand/v2"
	"slices"
)

// Peers are to be put into equal groups, of which each hands something to the next: what it takes
// them to talk decides.
type Peers struct {
	Groups int
	// Sum is what it takes a peer to exchange with another of its group.
	Sum [][]float64
	// Send is what it takes a peer to hand to another, the same both ways.
	Send [][]float64

	pairs map[[2]string]float64 // what two groups take with the best pairs
	sums  []float64             // of the peers that slowest was asked for
}

// Assignment is the group of each peer, and what that takes.
type Assignment struct {
	Group []int
	Cost  float64
}

// What the search does, as published: population, trials and points of a crossover. It stops
// before where the best has not changed for so many trials.
const (
	population = 100
	trials     = 4900
	points     = 5
	patience   = 500
)

// mostOrdered is up to how many groups their best order is looked for; more stay as they are
// numbered.
const mostOrdered = 10

// Search looks for the assignment of least cost: it begins with some by number and with random
// ones; parents are drawn, a child has some of its places
// from the one and the rest from the other, is improved, and takes the place of the worse parent
// where it is better.
func (p *Peers) Search(rng *rand.Rand) Assignment {
	all := p.inOrder()
	for len(all) < population {
		all = append(all, p.Random(rng))
	}
	best := slices.MinFunc(all, byCost)
	// A parent may be both: its child is then the same, improved.
	for trial, last := 0, 0; trial < trials && trial-last < patience; trial++ {
		one, other := rng.IntN(population), rng.IntN(population)
		child := p.cross(all[one].Group, all[other].Group, rng)
		if all[one].Cost < all[other].Cost {
			one = other
		}
		if p.improve(child); p.cost(child) >= all[one].Cost {
			continue
		}
		all[one] = Assignment{child, p.cost(child)}
		if all[one].Cost < best.Cost {
			best, last = all[one], trial
		}
	}
	return best
}

// byCost orders assignments, the best first.
func byCost(a, b Assignment) int {
	switch {
	case a.Cost < b.Cost:
		return -1
	case a.Cost > b.Cost:
		return 1
	}
	return 0
}

// inOrder are the assignments that go by the numbers of the peers, as neighbours have them: dealt
// out over one group after the other, over two at a time, and so on up to all.
func (p *Peers) inOrder() (all []Assignment) {
	size := len(p.Send) / p.Groups
	for many := 1; many <= p.Groups; many++ {
		if p.Groups%many == 0 {
			group := make([]int, len(p.Send))
			for i := range group {
				group[i] = i/(many*size)*many + i%many
			}
			all = append(all, Assignment{group, p.cost(group)})
		}
	}
	return all
}

// Random puts the peers into groups by chance.
func (p *Peers) Random(rng *rand.Rand) Assignment {
	group := make([]int, len(p.Send))
	for i, at := range rng.Perm(len(group)) {
		group[at] = i % p.Groups
	}
	return Assignment{group, p.cost(group)}
}

// cross is the second parent with a few places of the first; groups that are too large then hand
// peers to those that are too small.
func (p *Peers) cross(first, second []int, rng *rand.Rand) []int {
	// Only a few places change: what was good in the second parent mostly stays together.
	child, size := slices.Clone(second), make([]int, p.Groups)
	for range points {
		at := rng.IntN(len(child))
		child[at] = first[at]
	}
	for _, g := range child {
		size[g]++
	}
	for at, g := range child {
		if size[g] > len(child)/p.Groups {
			to := slices.IndexFunc(size, func(n int) bool { return n < len(child)/p.Groups })
			child[at], size[g], size[to] = to, size[g]-1, size[to]+1
		}
	}
	return child
}

// improve lets the peer that exchanges longest change places with another, the one with which the
// slowest of all gets fastest, for as long as that helps.
func (p *Peers) improve(group []int) {
	for {
		worst, before := p.slowest(group)
		best, least := -1, before*(1-1e-9) // sums that differ by rounding alone would go on for ever
		for other := range group {
			if group[other] == group[worst] {
				continue
			}
			if now := p.changed(group, worst, other); now < least {
				best, least = other, now
			}
		}
		if best < 0 {
			return
		}
		group[worst], group[best] = group[best], group[worst]
	}
}

// changed is what the slowest exchange would take if two peers changed places. It starts from
// the sums that slowest left and looks at the two groups alone, as nothing else changes: most of a
// search is spent here.
func (p *Peers) changed(group []int, one, other int) (most float64) {
	left, right := 0.0, 0.0 // of the two, in their new groups
	for k, g := range group {
		sum := p.sums[k]
		switch {
		case k == one || k == other:
			continue
		case g == group[one]:
			sum += p.Sum[k][other] - p.Sum[k][one]
			right += p.Sum[other][k]
		case g == group[other]:
			sum += p.Sum[k][one] - p.Sum[k][other]
			left += p.Sum[one][k]
		}
		most = max(most, sum)
	}
	return max(most, left, right)
}

// slowest is the peer that exchanges longest with its group, and how long.
func (p *Peers) slowest(group []int) (worst int, most float64) {
	p.sums = slices.Grow(p.sums[:0], len(group))
	for i := range group {
		sum := 0.0
		for j := range group {
			if i != j && group[i] == group[j] {
				sum += p.Sum[i][j]
			}
		}
		if p.sums = append(p.sums, sum); sum > most {
			worst, most = i, sum
		}
	}
	return worst, most
}

// cost is what the slowest exchange takes, and twice what the way through all groups does: what
// is handed on forwards comes back.
func (p *Peers) cost(group []int) float64 {
	_, sum := p.slowest(group)
	length, _ := p.order(members(group, p.Groups))
	return sum + 2*length
}

// members lists the peers of each group.
func members(group []int, groups int) [][]int {
	all := make([][]int, groups)
	for i, g := range group {
		all[g] = append(all[g], i)
	}
	return all
}

// order is the shortest way through the groups, where two of them take what the slowest of their
// pairs does, and its length.
func (p *Peers) order(all [][]int) (float64, []int) {
	if len(all) > mostOrdered {
		order, length := make([]int, len(all)), 0.0
		for i := range order {
			if order[i] = i; i > 0 {
				length += p.between(all[i-1], all[i])
			}
		}
		return length, order
	}
	cost := make([][]float64, len(all))
	for i := range cost {
		cost[i] = make([]float64, len(all))
		for j := range i {
			cost[i][j] = p.between(all[i], all[j])
			cost[j][i] = cost[i][j]
		}
	}
	return Path(cost)
}

// between is what the slowest pair of two groups takes where they are paired best. It is kept, as
// children have most groups from their parents.
func (p *Peers) between(one, other []int) float64 {
	key := [2]string{name(one), name(other)}
	if took, known := p.pairs[key]; known {
		return took
	}
	took, _ := Bottleneck(p.sends(one, other))
	if p.pairs == nil {
		p.pairs = map[[2]string]float64{}
	}
	p.pairs[key] = took
	return took
}

// name is different for two groups.
func name(group []int) string {
	b := make([]byte, 0, 2*len(group))
	for _, i := range group {
		b = append(b, byte(i), byte(i>>8))
	}
	return string(b)
}

// sends is what each of one group takes to hand to each of another.
func (p *Peers) sends(one, other []int) [][]float64 {
	cost := make([][]float64, len(one))
	for r, i := range one {
		for _, j := range other {
			cost[r] = append(cost[r], p.Send[i][j])
		}
	}
	return cost
}

// Lines are those who hand to each other: of each line the peer of each group, in order.
func (p *Peers) Lines(a Assignment) [][]int {
	all := members(a.Group, p.Groups)
	_, order := p.order(all)
	lines := make([][]int, len(all[0]))
	for i := range lines {
		lines[i] = []int{all[order[0]][i]}
	}
	// Each group is paired with the one before, and a line goes on with the partner of its last.
	before := all[order[0]]
	for _, g := range order[1:] {
		_, column := Bottleneck(p.sends(before, all[g]))
		next := make([]int, len(before))
		for i := range lines {
			next[i] = all[g][column[i]]
			lines[i] = append(lines[i], next[i])
		}
		before = next
	}
	return lines
}
