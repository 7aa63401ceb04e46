package zbv

import "slices"

// The passes of a chunk of V-Half and V-Min, in the order in which a microbatch meets them. A rank has
// gradients of weights besides, of which only the turn counts.
const (
	down     = iota // forward on the way down the ranks
	up              // forward on the way up
	backUp          // gradients of inputs of the chunk on the way up
	backDown        // and of that on the way down
	weights
	passes
)

// every is after how many slots a block is repeated.
const every = 6

// cell is what a rank does in a slot; the zero one is nothing.
type cell struct{ pass, micro int32 }

// named makes a cell of a pass; micro is the turn of gradients of weights.
func named(pass, micro int) cell { return cell{int32(pass) + 1, int32(micro)} }

// is reports whether a cell holds that kind of pass.
func (c cell) is(pass int) bool { return int(c.pass) == pass+1 }

// forward reports whether a pass takes memory; that of weights gives it back.
func (c cell) forward() bool { return c.is(down) || c.is(up) }

// back reports whether gradients of weights are due after a pass.
func (c cell) back() bool { return c.is(backUp) || c.is(backDown) }

// grid is an iteration in slots of one length, in which the last step of V-Half and V-Min re-orders
// both ends: there the blocks leave slots empty, since those that would fill them have not begun or are
// done. A pass goes to the first empty slot behind what it waits for in which no rank keeps more than
// the fullest did before. What lies between is the block that repeats, and stays.
type grid struct {
	micros int
	rows   [][]cell
	at     [][passes][]int // of each rank: the slot of each pass
}

// newGrid repeats a block.
func newGrid(ranks, micros int, block func(p, r int) [4]int) *grid {
	g := &grid{micros: micros, rows: make([][]cell, ranks), at: make([][passes][]int, ranks)}
	length := 0
	for r := range ranks {
		first := block(ranks, r)
		length = max(length, slices.Max(first[:])+every*micros+1)
	}
	for r := range ranks {
		g.rows[r] = make([]cell, length+2*micros) // weights that find no empty slot stand behind
		for pass, first := range block(ranks, r) {
			g.at[r][pass] = make([]int, micros)
			for k := range micros {
				g.put(r, first+every*k, named(pass, k))
			}
		}
		g.at[r][weights] = make([]int, 2*micros)
	}
	return g
}

func (g *grid) put(r, slot int, c cell) {
	g.rows[r][slot] = c
	g.at[r][c.pass-1][c.micro] = slot
}

// weigh has gradients of weights take the first empty slots, anew.
func (g *grid) weigh() {
	for r, row := range g.rows {
		due, turn := 0, 0
		for x, c := range row {
			switch {
			case c.back():
				due++
			case (c == cell{} || c.is(weights)) && due > 0:
				g.put(r, x, named(weights, turn))
				due, turn = due-1, turn+1
			case c.is(weights):
				row[x] = cell{}
			}
		}
	}
}

// after is the first slot in which a pass has what it waits for: the same pass on the rank before, in
// the direction in which it goes, the pass before it, and that of the microbatch before.
func (g *grid) after(r int, c cell) int {
	pass, k := int(c.pass)-1, int(c.micro)
	last := -1
	see := func(r, pass, k int) {
		if r >= 0 && r < len(g.at) && k >= 0 {
			last = max(last, g.at[r][pass][k])
		}
	}
	see(r, pass, k-1)
	switch pass {
	case down, backUp:
		see(r-1, pass, k)
	case up, backDown:
		see(r+1, pass, k)
	}
	if pass > down && pass < weights {
		see(r, pass-1, k)
	}
	return last + 1
}

// squeeze has each rank do its passes in their order as soon as it can, and takes gradients of weights
// out, whose slots stay empty.
func (g *grid) squeeze() {
	old := g.empty()
	free := make([]int, len(old))
	for x := range old[0] {
		for r := range old {
			if c := old[r][x]; c != (cell{}) {
				if !c.is(weights) {
					free[r] = max(free[r], g.after(r, c))
					g.put(r, free[r], c)
				}
				free[r]++
			}
		}
	}
}

// empty clears the rows and returns what was in them.
func (g *grid) empty() (old [][]cell) {
	old = g.rows
	g.rows = make([][]cell, len(old))
	for r := range old {
		g.rows[r] = make([]cell, len(old[r]))
	}
	return old
}

// hasten moves passes of the end of an iteration, and where gradients of weights have slots of their own
// those of its start too, to earlier slots. Slots go by one after the other, so that what a pass waits for has been
// moved before. Where gradients of weights have no slots they take those that are empty.
func (g *grid) hasten(both bool) {
	old := g.empty()
	kept := make([]account, len(old))
	limit := int32(0)
	for r := range old {
		kept[r] = account{row: g.rows[r], old: old[r], implied: !both, done: make([]balance, 1, len(old[r])+1)}
		limit = max(limit, kept[r].most())
	}
	begun, ended := false, false // the first gradient is back, the last microbatch has begun
	for x := range old[0] {
		for r := range old {
			c, to := old[r][x], x
			begun = begun || r == 0 && c.is(backDown)
			if c != (cell{}) && (begun && ended || !begun && both) {
				to = g.sooner(r, x, c, &kept[r], limit)
			}
			ended = ended || r == 0 && c.is(down) && int(c.micro) == g.micros-1
			if c != (cell{}) {
				g.put(r, to, c)
			}
			kept[r].count(to, x)
		}
	}
}

// sooner is the first empty slot before its own to which a pass can go.
func (g *grid) sooner(r, x int, c cell, kept *account, limit int32) int {
	first := g.after(r, c)
	if c.is(weights) { // it waits for the gradients of inputs whose turn it is, whichever they are
		y := x
		for n := kept.done[x].backs; n > c.micro; {
			if y--; g.rows[r][y].back() {
				n--
			}
		}
		first = max(first, y+1)
	}
	for to := first; to < x; to++ {
		if g.rows[r][to] == (cell{}) && kept.fits(to, x, c, limit) {
			return to
		}
	}
	return x
}

// balance is what a rank keeps after a slot, how many gradients of inputs it has done, and how many of
// weights where these have no slots of their own.
type balance struct{ kept, backs, implied int32 }

// account follows what a rank keeps, slot by slot.
type account struct {
	row, old []cell    // where passes stand now, and those behind the slot that is looked at
	implied  bool      // gradients of weights take empty slots
	done     []balance // before each slot that was passed, and behind the last
}

// pass is what a cell makes of a balance.
func (a *account) pass(b balance, c cell) balance {
	switch {
	case c.forward():
		b.kept++
	case c.back():
		b.backs++
	case c.is(weights):
		b.kept--
	case a.implied && c == cell{} && b.implied < b.backs:
		b.kept, b.implied = b.kept-1, b.implied+1
	}
	return b
}

// most is the most that is kept where passes stood.
func (a *account) most() (most int32) {
	b := balance{}
	for _, c := range a.old {
		b = a.pass(b, c)
		most = max(most, b.kept)
	}
	return most
}

// fits reports whether no more than a limit is kept if a pass goes from slot x to an earlier one. From
// x on that changes nothing, but where gradients of weights take other slots.
func (a *account) fits(to, x int, c cell, limit int32) bool {
	if !a.implied && !c.forward() {
		return true
	}
	b := a.pass(a.done[to], c)
	for y := to + 1; y < x && b.kept <= limit; y++ {
		b = a.pass(b, a.row[y])
	}
	if !a.implied || b.kept > limit {
		return b.kept <= limit
	}
	// Once as much is kept and due as where the pass stays, the rest is as it was, which fits.
	stays := a.pass(a.done[x], c)
	b = a.pass(b, cell{})
	for y := x + 1; y < len(a.old) && b.kept <= limit && b != stays; y++ {
		b, stays = a.pass(b, a.old[y]), a.pass(stays, a.old[y])
	}
	return b.kept <= limit
}

// count takes in that slot x has been passed, and what stood there has gone to another.
func (a *account) count(to, x int) {
	a.done = a.done[:to+1]
	for y := to; y <= x; y++ {
		a.done = append(a.done, a.pass(a.done[y], a.row[y]))
	}
}
