package search

import (
	"cmp"
	"slices"
)

// Greedy searches without chance: counts first, each device to where it is worth most
// along the concave hull of each job's curve; then packing on the fewest nodes, largest
// first; then it moves one job, or two at a time, as long as that improves the value.
func Greedy(p *Problem) Matrix {
	g := &greedy{space: newSpace(p), m: NewMatrix(len(p.Jobs), len(p.Room)), free: make([]int, len(p.Room)),
		spans: make([]int, len(p.Room)), inverse: make([]float64, len(p.Jobs))}
	for n, r := range p.Room {
		g.free[n] = min(r, mostRoom)
	}
	g.pack(g.counts())
	for range sweeps {
		if one, two := g.moveOne(), g.moveTwo(); !one && !two {
			break
		}
	}
	return g.m
}

// Improvement is fast at first; these bounds only guard against long tails.
const (
	sweeps = 8
	// neediest is the number of jobs that others are asked to make way for.
	neediest = 16
)

type greedy struct {
	*space
	m       Matrix
	free    []int     // by node
	spans   []int     // by node: jobs on several nodes that are there
	inverse []float64 // by job, of the row it has

	open []int // nodes by falling room, for plan
}

// segment is a stretch of a job's concave hull.
type segment struct {
	job, from, to int
	slope         float64 // worth per device
}

// counts gives out devices as if every job could be packed on the fewest nodes.
func (g *greedy) counts() []int {
	devices, largest := 0, 1
	for _, f := range g.free {
		devices, largest = devices+f, max(largest, f)
	}
	var all []segment
	curve := make([]float64, 0, devices+1)
	for j := range g.jobs {
		baseNodes, baseReplicas := g.Base.Size(j)
		curve = curve[:0]
		for k := range min(g.Jobs[j].Most, devices) + 1 {
			nodes, factor := (k+largest-1)/largest, g.Jobs[j].Factor
			if nodes > g.MostNodes {
				break
			}
			if k == baseReplicas && baseNodes <= g.MostNodes {
				nodes, factor = baseNodes, 1
			}
			curve = append(curve, 1/(g.speedup(j, min(nodes, g.nodes), k)*g.scale*factor+nothing))
		}
		all = hull(all, j, curve)
	}
	slices.SortFunc(all, func(a, b segment) int {
		return cmp.Or(cmp.Compare(b.slope, a.slope), cmp.Compare(a.job, b.job), cmp.Compare(a.from, b.from))
	})
	want := make([]int, g.jobs)
	for _, s := range all {
		if want[s.job] == s.from && s.to-s.from <= devices {
			devices -= s.to - s.from
			want[s.job] = s.to
		}
	}
	return want
}

// hull appends the falling stretches of the lower convex hull of a curve.
func hull(into []segment, job int, curve []float64) []segment {
	start := len(into)
	for to := 1; to < len(curve); to++ {
		next := segment{job, to - 1, to, curve[to-1] - curve[to]}
		// A stretch less worth than the one after it is no corner of the hull.
		for len(into) > start && into[len(into)-1].slope <= next.slope {
			next.from = into[len(into)-1].from
			next.slope = (curve[next.from] - curve[to]) / float64(to-next.from)
			into = into[:len(into)-1]
		}
		into = append(into, next)
	}
	for len(into) > start && into[len(into)-1].slope <= 0 {
		into = into[:len(into)-1]
	}
	return into
}

// pack keeps the rows of jobs that keep their count and places the others.
func (g *greedy) pack(want []int) {
	var rest []int
	for j, k := range want {
		if _, had := g.Base.Size(j); had == k && g.fits(g.Base.Row(j)) {
			g.put(j, g.Base.Row(j))
			continue
		}
		rest = append(rest, j)
	}
	slices.SortStableFunc(rest, func(a, b int) int { return want[b] - want[a] })
	for _, j := range rest {
		g.put(j, g.best(j, want[j]))
	}
}

func (g *greedy) fits(row []uint8) bool {
	nodes := 0
	for _, c := range row {
		nodes += min(int(c), 1)
	}
	for n, c := range row {
		if int(c) > g.free[n] || c > 0 && nodes > 1 && g.spans[n] > 0 && !g.Mingle {
			return false
		}
	}
	return true
}

// put gives a job a row that fits.
func (g *greedy) put(j int, row []uint8) {
	copy(g.m.Row(j), row)
	g.account(j, 1)
	g.inverse[j], _ = g.row(j, g.m.cells[j*g.stride:][:g.stride])
}

// lift takes a job's devices and returns its row as it was.
func (g *greedy) lift(j int) []uint8 {
	row := slices.Clone(g.m.Row(j))
	g.account(j, -1)
	clear(g.m.Row(j))
	return row
}

func (g *greedy) account(j, sign int) {
	nodes, _ := g.m.Size(j)
	for n, c := range g.m.Row(j) {
		g.free[n] -= sign * int(c)
		if c > 0 && nodes > 1 {
			g.spans[n] += sign
		}
	}
}

// best is the row of most worth to a job without devices, of at most so many
// replicas: its base, or as many as is best on the fewest nodes.
func (g *greedy) best(j, most int) []uint8 {
	g.open = g.open[:0]
	tightest := 0 // the most on one node
	for n, f := range g.free {
		if f == 0 || g.most[j*g.stride+n] == 0 {
			continue
		}
		tightest = max(tightest, f)
		if g.spans[n] == 0 || g.Mingle {
			g.open = append(g.open, n)
		}
	}
	slices.SortStableFunc(g.open, func(a, b int) int { return g.free[b] - g.free[a] })
	row := make([]uint8, g.stride)
	least, count, nodes := 1/nothing, 0, 0
	for k, reach, used := 1, 0, 0; k <= min(most, g.Jobs[j].Most); k++ {
		for reach < k && used < min(len(g.open), g.MostNodes) {
			reach += g.free[g.open[used]]
			used++
		}
		on := used
		if k <= tightest {
			on = 1
		} else if reach < k {
			break
		}
		if inverse := 1 / (g.speedup(j, on, k)*g.scale*g.Jobs[j].Factor + nothing); inverse < least {
			least, count, nodes = inverse, k, on
		}
	}
	base := g.base[j*g.stride:][:g.stride]
	if inverse, _ := g.row(j, base); inverse <= least && g.fits(base[:g.nodes]) {
		copy(row, base)
		return row[:g.nodes]
	}
	g.lay(j, row, count, nodes)
	return row[:g.nodes]
}

// lay fills the roomiest open nodes, and the last, or only, one as tightly as possible.
func (g *greedy) lay(j int, row []uint8, count, nodes int) {
	for _, n := range g.open[:max(nodes-1, 0)] {
		row[n] = uint8(g.free[n])
		count -= g.free[n]
	}
	last := -1
	for n, f := range g.free {
		open := nodes == 1 || g.spans[n] == 0 || g.Mingle
		if f >= count && row[n] == 0 && open && g.most[j*g.stride+n] > 0 && (last < 0 || f < g.free[last]) {
			last = n
		}
	}
	if count > 0 {
		row[last] = uint8(count)
	}
}

// moveOne gives each job in turn the best row there is for it alone.
func (g *greedy) moveOne() (moved bool) {
	for j := range g.jobs {
		was := g.inverse[j]
		old := g.lift(j)
		g.put(j, g.best(j, g.Jobs[j].Most))
		if g.inverse[j] < was-1e-12 {
			moved = true
			continue
		}
		g.lift(j)
		g.put(j, old)
	}
	return moved
}

// moveTwo lets the jobs that fare worst take from each other job in turn.
func (g *greedy) moveTwo() (moved bool) {
	order := make([]int, g.jobs)
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.inverse[b], g.inverse[a]) })
	for _, needy := range order[:min(neediest, g.jobs)] {
		for giver := range g.jobs {
			if giver != needy && g.exchange(needy, giver) {
				moved = true
			}
		}
	}
	return moved
}

// exchange tries for the needy one more replica than it has, up to all that two can
// have between them, and the rest for the giver.
func (g *greedy) exchange(needy, giver int) bool {
	_, had := g.m.Size(needy)
	_, gave := g.m.Size(giver)
	if gave == 0 {
		return false
	}
	was := g.inverse[needy] + g.inverse[giver]
	oldNeedy, oldGiver := g.lift(needy), g.lift(giver)
	for _, most := range [...]int{had + 1, had + (gave+1)/2, had + gave} {
		g.put(needy, g.best(needy, most))
		g.put(giver, g.best(giver, g.Jobs[giver].Most))
		if g.inverse[needy]+g.inverse[giver] < was-1e-12 {
			return true
		}
		g.lift(giver)
		g.lift(needy)
	}
	g.put(needy, oldNeedy)
	g.put(giver, oldGiver)
	return false
}
