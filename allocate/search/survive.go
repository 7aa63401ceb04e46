package search

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// survive keeps the best of old and young: by fronts of those that none beats in both
// value and utilisation, and within the last front those with the most room around
// them. Who is alive stays in the order of value.
func (g *genetic) survive() {
	slices.SortFunc(g.young, better)
	all := g.merge()
	g.sortIntoFronts(all)
	left := g.effort.Population
	for _, front := range g.fronts {
		if len(front) == 0 {
			break
		}
		if left > 0 {
			crowd(all, front)
		}
		if len(front) > left {
			slices.SortFunc(front, func(a, b int) int {
				return cmp.Or(cmp.Compare(all[b].crowding, all[a].crowding), cmp.Compare(a, b))
			})
			for _, i := range front[left:] {
				all[i].rank = dead
			}
		}
		left -= min(left, len(front))
	}
	clear(g.seen)
	g.alive, g.young = g.alive[:0], g.young[:0]
	for i := range all {
		if all[i].rank == dead {
			g.spare = append(g.spare, all[i].cells)
			continue
		}
		g.alive = append(g.alive, all[i])
		g.note(all[i].cells)
	}
}

const dead = -1

func better(a, b individual) int {
	return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(b.utilisation, a.utilisation), bytes.Compare(a.cells, b.cells))
}

// merge puts old and young, both sorted, together.
func (g *genetic) merge() []individual {
	old, young := g.alive, g.young
	g.merged = g.merged[:0]
	for len(old) > 0 && len(young) > 0 {
		if better(old[0], young[0]) <= 0 {
			g.merged, old = append(g.merged, old[0]), old[1:]
		} else {
			g.merged, young = append(g.merged, young[0]), young[1:]
		}
	}
	g.merged = append(append(g.merged, old...), young...)
	return g.merged
}

// sortIntoFronts goes through individuals by falling value, so one is beaten by a front
// exactly if that front's utilisation so far is as large.
func (g *genetic) sortIntoFronts(all []individual) {
	for k := range g.fronts {
		g.fronts[k] = g.fronts[k][:0]
	}
	last := 0 // fronts in use
	for i := range all {
		x := &all[i]
		k, _ := slices.BinarySearchFunc(g.fronts[:last], x, func(front []int, x *individual) int {
			y := &all[front[len(front)-1]]
			if y.utilisation > x.utilisation || y.utilisation == x.utilisation && y.value > x.value {
				return -1
			}
			return 1
		})
		if k == last {
			if last++; len(g.fronts) < last {
				g.fronts = append(g.fronts, nil)
			}
		}
		g.fronts[k] = append(g.fronts[k], i)
		x.rank, x.crowding = k, 0
	}
}

// crowd measures the room around each individual of a front, which is sorted by value.
func crowd(all []individual, front []int) {
	first, last := &all[front[0]], &all[front[len(front)-1]]
	first.crowding, last.crowding = math.Inf(1), math.Inf(1)
	width, height := first.value-last.value, last.utilisation-first.utilisation
	if width <= 0 || height <= 0 {
		return
	}
	for k := 1; k+1 < len(front); k++ {
		before, after := &all[front[k-1]], &all[front[k+1]]
		all[front[k]].crowding = (before.value-after.value)/width + (after.utilisation-before.utilisation)/height
	}
}
