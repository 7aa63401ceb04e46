// Package rounds orders passes with backward passes in halves as the automatic scheduler of Zero Bubble does
// (Qi et al., ICLR 2024; sail-sg/zero-bubble-pipeline-parallelism): from costs and from how many activations each rank
// may keep.
package rounds

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Variants is how many variants the rule has.
const Variants = 8

// rounds is the rule in one of its variants. It goes microbatch by microbatch: first all ranks
// decide whether they begin another one, then each does the gradients of inputs of the one whose turn it is, from
// the last rank to the first. Gradients of weights fill what a rank has to wait, and make room where it
// keeps as much as it may.
type rounds struct {
	most []int // by rank: activations that it may keep
	// late lets a rank begin microbatches that make it late for its first gradient, patient has it
	// wait where a microbatch more would make it late for a later one, and filling has it do gradients of
	// weights that overrun its wait while others have waited longer.
	late, patient, filling bool

	c      *pipeline.Costs
	micros int
	ranks  []rank
	ends   [2][][]unit.Time // of forward passes and gradients of inputs, by rank and microbatch
	worst  unit.Duration    // what the rank that waited longest did
	stuck  bool             // a rank has no room and nothing to give back, waits for what does not come, or is late
}

// rank is how far a rank is.
type rank struct {
	*pipeline.Line
	chunk      pipeline.Chunk
	f, i, w    int // passes done
	free       unit.Time
	waited     unit.Duration // since its first pass
	takes      [3]unit.Duration
	from, back unit.Duration // what comes from the rank before takes, and from the one behind
}

// Schedule writes the order of a variant of the rule for ranks that may keep so many activations each, and
// says when it ends, if it fits them and takes no longer than a limit.
func Schedule(variant int, most []int, microbatches int, c *pipeline.Costs, limit unit.Duration) (s pipeline.Schedule, end unit.Time, fits bool) {
	p, g := len(most), rounds{most: most, late: variant&1 != 0, patient: variant&2 != 0, filling: variant&4 != 0}
	s = pipeline.NewSchedule(p, microbatches, pipeline.Straight(p))
	g.c, g.micros, g.ranks = c, microbatches, make([]rank, p)
	for k := range g.ends {
		g.ends[k] = make([][]unit.Time, p)
	}
	for r := range g.ranks {
		x := &g.ranks[r]
		x.Line, x.chunk = s.Line(r), pipeline.Chunk{Stage: int32(r)}
		for k, kind := range []pipeline.Kind{pipeline.Forward, pipeline.Input, pipeline.Weight} {
			x.takes[k] = c.Compute(c.Stages[r].Of(kind), r)
		}
		if r > 0 {
			x.from = c.Link(r-1, r).Takes(c.Stages[r-1].OutputKiB)
		}
		if r < p-1 {
			x.back = c.Link(r+1, r).Takes(c.Stages[r].OutputKiB)
		}
		for k := range g.ends {
			g.ends[k][r] = make([]unit.Time, 0, microbatches)
		}
	}
	// The first microbatch goes through all ranks before any of them decides anything: until its gradient
	// comes back nobody has gradients of weights to do, and only then is it known how long each waits.
	g.first()
	for k := 1; k < microbatches && !g.stuck; k++ {
		g.round(k)
		for r := range g.ranks { // has all that it has not done yet still before it
			x := &g.ranks[r]
			left := unit.Duration(microbatches-x.f)*x.takes[0] + unit.Duration(microbatches-x.i)*x.takes[1] + unit.Duration(microbatches-x.w)*x.takes[2]
			g.stuck = g.stuck || x.free.Sub(0) > limit-left
		}
	}
	for r := range g.ranks {
		x := &g.ranks[r]
		for x.w < x.i {
			g.weight(r)
		}
		end = max(end, x.free)
	}
	return s, end, !g.stuck && end.Sub(0) <= limit
}

// kept is how many activations a rank keeps.
func (x *rank) kept() int { return x.f - x.w }

// ended is when a rank ended a pass forward, or the gradients of inputs, of a microbatch. Where it has
// not, as may be where a rank keeps less than the one behind it, the variant has no order.
func (g *rounds) ended(k, r, micro int) unit.Time {
	if micro >= len(g.ends[k][r]) {
		g.stuck = true
		return 0
	}
	return g.ends[k][r][micro]
}

// comes is when what a rank's next pass forward waits for is there.
func (g *rounds) comes(r int) unit.Time {
	if r == 0 {
		return 0
	}
	return g.ended(0, r-1, g.ranks[r].f).Add(g.ranks[r].from)
}

// returns is when what its next gradients of inputs wait for is there.
func (g *rounds) returns(r int) unit.Time {
	x := &g.ranks[r]
	if r == len(g.ranks)-1 {
		return g.ended(0, r, x.i)
	}
	return max(g.ended(0, r, x.i), g.ended(1, r+1, x.i).Add(x.back))
}

// do has a rank do a pass that may begin at an instant.
func (g *rounds) do(r int, letter string, ready unit.Time, takes unit.Duration) {
	x := &g.ranks[r]
	if x.f > 0 && ready > x.free {
		x.waited += ready.Sub(x.free)
		g.worst = max(g.worst, x.waited)
	}
	x.Do(letter, x.chunk)
	x.free = max(x.free, ready).Add(takes)
}

func (g *rounds) forward(r int) {
	x := &g.ranks[r]
	g.do(r, "F", g.comes(r), x.takes[0])
	x.f++
	g.ends[0][r] = append(g.ends[0][r], x.free)
}

func (g *rounds) input(r int) {
	x := &g.ranks[r]
	g.do(r, "I", g.returns(r), x.takes[1])
	x.i++
	g.ends[1][r] = append(g.ends[1][r], x.free)
}

func (g *rounds) weight(r int) {
	x := &g.ranks[r]
	g.do(r, "W", x.free, x.takes[2])
	x.w++
}

// first has all ranks begin as many microbatches as they can until their first gradient comes, each
// fewer than the rank before it, and then do the gradients of inputs of the first one.
func (g *rounds) first() {
	p := len(g.ranks)
	for r := range p {
		g.forward(r)
	}
	// From the last rank to the first, as a rank's first gradient comes when the one behind it has done its
	// own, and that one may be late for it.
	more, back := make([]int, p), unit.Time(0) // when the gradient of the rank behind is done
	for r := p - 1; r >= 0; r-- {
		x := &g.ranks[r]
		if r == p-1 {
			back = x.free.Add(x.takes[1])
			continue
		}
		comes, free := back.Add(x.back), x.free
		for x.f+more[r] < g.micros && x.kept()+more[r] < g.most[r] {
			if g.late && free >= comes || !g.late && free.Add(x.takes[0]) > comes {
				break
			}
			free = free.Add(x.takes[0])
			more[r]++
		}
		back = max(free, comes).Add(x.takes[1])
	}
	// A rank that began as many as the one before it would have to wait for each of them: one fewer is
	// enough to keep it busy until its gradient comes.
	for r := range p {
		for r > 0 && more[r] > 0 && more[r] >= more[r-1] && g.ranks[r].f+more[r] < g.micros {
			more[r]--
		}
	}
	for r := range p {
		for range more[r] {
			g.forward(r)
		}
	}
	for r := p - 1; r >= 0; r-- {
		g.input(r)
	}
}

// round has the ranks that want to begin another microbatch, and do the gradients of inputs of this one.
func (g *rounds) round(k int) {
	p := len(g.ranks)
	begin := make([]bool, p)
	for r := range p {
		begin[r] = g.ranks[r].f < g.micros && (!g.patient || r == p-1 || g.ranks[r].f < g.ranks[r+1].f+2 || g.inTime(r))
	}
	for r := p - 2; r >= 0; r-- {
		begin[r] = begin[r] && begin[r+1] // or it would be further ahead of the rank behind
	}
	// Room is made first, since a pass forward that does not fit cannot begin at all. Then what is left of
	// the wait for it is filled.
	for r := range p {
		if !begin[r] {
			continue
		}
		for g.ranks[r].kept() >= g.most[r] {
			if g.ranks[r].w == g.ranks[r].i {
				g.stuck = true
				return
			}
			g.weight(r)
		}
		if r > 0 {
			g.fill(r, g.comes(r))
		}
		g.forward(r)
	}
	// The same for gradients of inputs, which free nothing themselves. The first rank, when it has no more
	// to begin, has nothing to be in time for: its gradients of weights delay nobody.
	for r := p - 1; r >= 0; r-- {
		if r < p-1 {
			g.fill(r, g.returns(r))
		}
		for x := &g.ranks[r]; r == 0 && x.f == g.micros && x.w < x.i; {
			g.weight(r)
		}
		g.input(r)
	}
}

// inTime reports whether a rank that is ahead of the one behind begins another microbatch all the same:
// where it is done by when its next gradient could be there, or would have to wait too long.
func (g *rounds) inTime(r int) bool {
	x, behind := &g.ranks[r], &g.ranks[r+1]
	next := behind.free.Add(behind.takes[0]).Add(behind.takes[1]).Add(x.back)
	if x.free >= next {
		return false
	}
	room := unit.Duration(0) // what gradients of weights take that would have to make room
	for k := 0; x.kept()+1-k > g.most[r] && x.w+k < x.i; k++ {
		room += x.takes[2]
	}
	return x.free.Add(x.takes[0]).Add(room) <= next || next.Sub(x.free) > g.worst-x.waited
}

// fill has a rank do gradients of weights while it waits, and one that overruns its wait where it would
// otherwise be the one that waited longest.
func (g *rounds) fill(r int, until unit.Time) {
	x := &g.ranks[r]
	// What ends in time costs nothing.
	for x.w < x.i && x.free.Add(x.takes[2]) <= until {
		g.weight(r)
	}
	// What does not delays what comes, but is done then and not later: a rank that has waited less than the
	// worst can make up for that, one that has waited most cannot lose by it.
	if x.w < x.i && x.free < until && (g.filling || until.Sub(x.free) > g.worst-x.waited) {
		g.weight(r)
	}
}
