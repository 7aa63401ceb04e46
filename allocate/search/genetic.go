package search

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Effort is how long the genetic search goes on.
type Effort struct {
	Population, Generations int
	// Patience ends it after so many generations without a better value; 0 never does.
	Patience int
}

// Patient is the effort of the paper's artefact, 100 generations of 100, ended early, in
// half the time. On the one published workload where both were run (6) it is slightly worse: mean completion times of 2480 to
// 2492 s over six seeds, against 2455 and 2481 s. The patience was chosen there, of 5, 10
// and 20.
func Patient() Effort { return Effort{Population: 100, Generations: 100, Patience: 20} }

// Genetic searches from the base and the given matrices, usually the population of
// the last time, and returns the best matrix and its last population. Equal seeds
// give equal results.
func Genetic(p *Problem, from []Matrix, effort Effort, seed uint64) (best Matrix, population []Matrix) {
	g := &genetic{space: newSpace(p), effort: effort, rng: rand.NewPCG(seed, 0x706f6c6c7578)}
	g.prepare()
	g.start(from)
	for generation, since := 1, 0; generation < effort.Generations; generation++ {
		was := g.alive[0].value
		g.breed()
		g.survive()
		if since++; g.alive[0].value > was {
			since = 0
		}
		if effort.Patience > 0 && since >= effort.Patience {
			break
		}
	}
	for i := range g.alive {
		population = append(population, g.matrix(g.alive[i].cells))
	}
	return population[0], population
}

// individual is a matrix with what is known of it.
type individual struct {
	cells       []uint8
	value       float64 // harmonic mean of speedups
	utilisation float64 // speedup per device of the nodes in use
	rank        int
	crowding    float64
}

type genetic struct {
	*space
	effort Effort
	rng    *rand.PCG
	alive  []individual
	young  []individual
	spare  [][]uint8 // cells to use again
	seen   []uint64  // hashes of all alive and young, open addressing

	room, used []uint8 // by node, padded
	taken      []uint8 // by node: high, by a job on several nodes
	sharing    []uint8 // by node: jobs
	order      []int
	fronts     [][]int
	merged     []individual
}

func (g *genetic) prepare() {
	all := make([]uint8, 4*g.stride)
	g.room, g.used, g.taken, g.sharing = all[:g.stride], all[g.stride:2*g.stride], all[2*g.stride:3*g.stride], all[3*g.stride:]
	for n, r := range g.Room {
		g.room[n] = uint8(min(r, mostRoom))
	}
	size := 64
	for size < 8*g.effort.Population {
		size *= 2
	}
	g.seen = make([]uint64, size)
}

func (g *genetic) matrix(cells []uint8) Matrix {
	return Matrix{jobs: g.jobs, nodes: g.nodes, cells: slices.Clone(cells)}
}

// chance is true once in the given number of times, on average.
func (g *genetic) chance(perMille uint64) bool { return g.rng.Uint64()>>32*1000>>32 < perMille }

// below draws from 0 to n-1.
func (g *genetic) below(n int) int { return int(g.rng.Uint64() >> 32 * uint64(n) >> 32) }

func (g *genetic) fresh() []uint8 {
	if n := len(g.spare); n > 0 {
		cells := g.spare[n-1]
		g.spare = g.spare[:n-1]
		return cells
	}
	return make([]uint8, len(g.base))
}

// start repairs and ranks the first population.
func (g *genetic) start(from []Matrix) {
	for _, m := range append([]Matrix{{cells: g.base}}, from...) {
		if len(g.young) < g.effort.Population {
			cells := slices.Clone(m.cells)
			for i := range cells {
				cells[i] = min(cells[i], g.most[i])
			}
			g.admit(cells)
		}
	}
	g.survive()
}

// admit repairs and values a matrix; one that is there already is dropped.
func (g *genetic) admit(cells []uint8) bool {
	i := individual{cells: cells}
	g.repair(&i)
	if !g.note(cells) {
		g.spare = append(g.spare, cells)
		return false
	}
	g.young = append(g.young, i)
	return true
}

// note remembers a matrix, unless it is known.
func (g *genetic) note(cells []uint8) bool {
	hash := uint64(1)
	for at := 0; at < len(cells); at += 8 {
		hash ^= word(cells, at)
		hash *= 0x9e3779b97f4a7c15
		hash ^= hash >> 29
	}
	hash |= 1
	at := hash >> 8 % uint64(len(g.seen))
	for ; g.seen[at] != 0; at = (at + 1) % uint64(len(g.seen)) {
		if g.seen[at] == hash {
			return false
		}
	}
	g.seen[at] = hash
	return true
}

// breed makes a generation of young; a small problem may not have that many that differ.
func (g *genetic) breed() {
	for try := 0; try < 2*g.effort.Population && len(g.young) < g.effort.Population; try++ {
		a, b := g.fresh(), g.fresh()
		copy(a, g.alive[g.parent()].cells)
		copy(b, g.alive[g.parent()].cells)
		if g.chance(900) {
			cut := g.below(g.jobs) * g.stride
			for i := range cut {
				a[i], b[i] = b[i], a[i]
			}
		}
		g.mutate(a)
		g.mutate(b)
		g.admit(a)
		if len(g.young) < g.effort.Population {
			g.admit(b)
		} else {
			g.spare = append(g.spare, b)
		}
	}
}

// parent is the better of two.
func (g *genetic) parent() int {
	a, b := g.below(len(g.alive)), g.below(len(g.alive))
	x, y := &g.alive[a], &g.alive[b]
	if y.rank < x.rank || y.rank == x.rank && y.crowding > x.crowding {
		return b
	}
	return a
}

// mutate puts a tenth of the rows back to the base, zeroes a tenth of the cells of a
// tenth of the rows, and raises some cells of nodes with room: on average one at
// random, and one of a job that is there already.
func (g *genetic) mutate(cells []uint8) {
	clear(g.used)
	clear(g.sharing)
	for j := range g.jobs {
		row := cells[j*g.stride:][:g.stride]
		if g.chance(100) {
			copy(row, g.base[j*g.stride:])
		}
		if g.chance(100) {
			for n := range row[:g.nodes] {
				if row[n] > 0 && g.chance(100) {
					row[n] = 0
				}
			}
		}
		for at := 0; at < len(row); at += 8 {
			if x := word(row, at); x != 0 {
				putWord(g.used, at, word(g.used, at)+x)
				putWord(g.sharing, at, word(g.sharing, at)+occupied(x)>>7)
			}
		}
	}
	any := 1 / float64(g.jobs)
	for n, room := range g.room[:g.nodes] {
		if g.used[n] >= room {
			continue
		}
		here := 1 / float64(max(g.sharing[n], 1))
		few, many := uint64(any*(1<<32)), uint64((any+here-any*here)*(1<<32))
		for at := n; at < len(cells); at += g.stride {
			p := few
			if cells[at] > 0 {
				p = many
			}
			if r := g.rng.Uint64(); r>>32 < p && cells[at] <= g.most[at] {
				cells[at] += uint8((r & math.MaxUint32) * uint64(g.most[at]-cells[at]+1) >> 32)
			}
		}
	}
}

// repair makes a matrix legal, earlier jobs first, and values it.
func (g *genetic) repair(i *individual) {
	clear(g.taken)
	clear(g.used)
	inverse, speed := 0.0, 0.0
	for j := range g.jobs {
		row := i.cells[j*g.stride:][:g.stride]
		nodes, replicas := size(row)
		if nodes > 1 && !g.Mingle && g.part(row) || replicas > g.Jobs[j].Most || nodes > g.MostNodes {
			if nodes, replicas = size(row); replicas > g.Jobs[j].Most || nodes > g.MostNodes {
				g.shorten(row, g.Jobs[j].Most)
			}
		}
		if replicas > 0 {
			g.fill(row)
		}
		c, s := g.row(j, row)
		inverse, speed = inverse+c, speed+s
	}
	devices := 0
	for n, used := range g.used[:g.nodes] {
		if used > 0 {
			devices += int(g.room[n])
		}
	}
	i.value = float64(g.jobs) / inverse
	i.utilisation = speed / float64(max(devices, 1))
}

// part takes a job on several nodes off those that an earlier one has, and says
// whether there were any.
func (g *genetic) part(row []uint8) (met bool) {
	for at := 0; at < len(row); at += 8 {
		x := word(row, at)
		mine, theirs := occupied(x), word(g.taken, at)
		putWord(g.taken, at, mine|theirs)
		if both := mine & theirs; both != 0 {
			met = true
			putWord(row, at, x&^(both|(both-both>>7)))
		}
	}
	return met
}

// fill takes what room there is.
func (g *genetic) fill(row []uint8) {
	for at := 0; at < len(row); at += 8 {
		x := word(row, at)
		if x == 0 {
			continue
		}
		// A byte that borrows its high bit has more used than room.
		if used := word(g.used, at) + x; ((word(g.room, at)|high)-used)&high == high {
			putWord(g.used, at, used)
			continue
		}
		for n := at; n < at+8; n++ {
			row[n] = min(row[n], g.room[n]-g.used[n])
			g.used[n] += row[n]
		}
	}
}

// shorten takes replicas from random nodes until the job has no more than it may.
func (g *genetic) shorten(row []uint8, most int) {
	g.order = g.order[:0]
	for n, c := range row[:g.nodes] {
		if c > 0 {
			g.order = append(g.order, n)
		}
	}
	for k := range g.order {
		with := k + g.below(len(g.order)-k)
		g.order[k], g.order[with] = g.order[with], g.order[k]
		n := g.order[k]
		if k >= g.MostNodes {
			row[n] = 0
		}
		row[n] = uint8(min(int(row[n]), most))
		most -= int(row[n])
	}
}
