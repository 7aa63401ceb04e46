// Package circle is the geometry of CASSINI (Rajasekaran et al., NSDI 2024): jobs
// that compute and communicate in turns are arcs on a circle, and jobs that share a
// link are to be rotated so that their arcs do not overlap. Beside it stands the
// truth: what iterations really take, by an exact fluid simulation.
//
// An iteration is a circle of its own length. On a link, the circles of its jobs are
// rolled out on one circle of the least common multiple of their lengths; the score
// is 1 less the traffic above the link's capacity, over the circle; the best
// rotation has the best score. An affinity graph of jobs and contended links turns
// rotations per link into one shift per job, which works where it has no cycle.
//
// Recalled: score, circle and graph are the paper's; ours are how the circle is kept
// small, the exact search's bound, that links with the same jobs are one, and that
// where the graph has a cycle jobs are turned one by one while that helps. Left out:
// profiles of more than one communication phase per iteration, and agents that correct
// a drift.
package circle

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Arc is a job on one link: it is silent for Compute, then sends at Rate for
// Communicate, and again.
type Arc struct {
	Compute, Communicate unit.Duration
	Rate                 float64
}

// Fit is how well jobs go together on a link.
type Fit struct {
	Score float64 // 1: never above capacity
	// Shifts delay the jobs' iterations, each by less than one; the first job has 0.
	Shifts []unit.Duration
	// Unshifted is the score without shifts.
	Unshifted float64
}

const (
	// grid is what iteration times are rounded to before their multiple is taken.
	grid = 5 * unit.Millisecond
	// mostTurns is how many of its longest iterations a circle has at most; the grid
	// is doubled until it has.
	mostTurns = 16
	// angles is how many steps the shortest iteration has: 5 degrees each.
	angles = 72
	// mostSteps bounds the steps of a circle, however short its shortest iteration.
	mostSteps = 2880
	// mostTrials bounds the exact search: rotations tried times steps.
	mostTrials = 1 << 24
)

// Best rotates the jobs of a link of this capacity: by trying all rotations of up to
// three jobs, else by turning one job or two at a time while that helps.
func Best(capacity float64, arcs []Arc) Fit {
	c := roll(capacity, arcs)
	f := Fit{Shifts: make([]unit.Duration, len(arcs))}
	at := make([]int, len(arcs))
	f.Unshifted = c.score(c.excess(at))
	trials := len(c.sum)
	for _, n := range c.turns[1:] {
		trials *= n
	}
	if len(arcs) > 3 || trials > mostTrials {
		c.descend(at)
	} else {
		c.search(at)
	}
	f.Score = c.score(c.excess(at))
	for j, p := range at {
		f.Shifts[j] = unit.Duration(math.Round(float64(p)*c.step)) % (arcs[j].Compute + arcs[j].Communicate)
	}
	return f
}

// unified is the circle of a link: what each job sends in each step of it.
type unified struct {
	capacity float64
	step     float64     // microseconds
	sends    [][]float64 // by job and step, at rotation 0
	turns    []int       // by job: its rotations that differ
	sum      []float64   // scratch
	least    float64     // no rotation has less excess
}

// roll rounds the iteration times, finds the circle and rolls the jobs out on it. A
// rounded iteration keeps its proportions.
func roll(capacity float64, arcs []Arc) *unified {
	length, rounded := common(arcs)
	shortest := slices.Min(rounded)
	steps := int(min(mostSteps, angles*length/shortest))
	c := &unified{capacity: capacity, step: float64(length) / float64(steps), sum: make([]float64, steps)}
	total := 0.0
	for j, a := range arcs {
		sends := make([]float64, steps)
		each := float64(rounded[j]) / c.step // steps per iteration
		silent := each * float64(a.Compute) / float64(a.Compute+a.Communicate)
		for k := range int(length / rounded[j]) {
			cover(sends, float64(k)*each+silent, float64(k+1)*each, a.Rate)
		}
		for _, s := range sends {
			total += s
		}
		c.sends = append(c.sends, sends)
		c.turns = append(c.turns, int(math.Ceil(each-1e-9)))
	}
	c.least = max(0, total-capacity*float64(steps))
	return c
}

// common rounds the iteration times and returns their least common multiple.
func common(arcs []Arc) (length unit.Duration, rounded []unit.Duration) {
	rounded = make([]unit.Duration, len(arcs))
	for g := grid; ; g *= 2 {
		for j, a := range arcs {
			rounded[j] = max(1, (a.Compute+a.Communicate+g/2)/g) * g
		}
		most := mostTurns * slices.Max(rounded)
		length = g
		for _, r := range rounded {
			if length = length / divisor(length, r) * r; length > most {
				break
			}
		}
		if length <= most {
			return length, rounded
		}
	}
}

func divisor(a, b unit.Duration) unit.Duration {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// cover adds an arc to the steps it covers, to each by the part it covers of it.
func cover(sends []float64, from, to, rate float64) {
	for i := int(from); i < len(sends) && float64(i) < to; i++ {
		sends[i] += rate * max(0, min(to, float64(i+1))-max(from, float64(i)))
	}
}

func (c *unified) score(excess float64) float64 {
	return 1 - excess/(float64(len(c.sum))*c.capacity)
}

// add puts a job's traffic at a rotation on a sum, times a sign.
func (c *unified) add(sum []float64, job, turn int, sign float64) {
	sends := c.sends[job]
	for i, s := range sends[:len(sends)-turn] {
		sum[turn+i] += sign * s
	}
	for i, s := range sends[len(sends)-turn:] {
		sum[i] += sign * s
	}
}

// beside is the excess of a sum and a job at a rotation; it stops counting above a
// bound.
func (c *unified) beside(sum []float64, job, turn int, bound float64) float64 {
	sends, excess := c.sends[job], 0.0
	for i, s := range sends[:len(sends)-turn] {
		excess += max(0, sum[turn+i]+s-c.capacity)
	}
	if excess >= bound {
		return excess
	}
	for i, s := range sends[len(sends)-turn:] {
		excess += max(0, sum[i]+s-c.capacity)
	}
	return excess
}

// excess is the traffic above the capacity over the whole circle.
func (c *unified) excess(at []int) float64 {
	clear(c.sum)
	for j, p := range at {
		c.add(c.sum, j, p, 1)
	}
	e := 0.0
	for _, s := range c.sum {
		e += max(0, s-c.capacity)
	}
	return e
}

// slight is a difference, as a part of the capacity, that is none.
const slight = 1e-9

// turn finds the first best rotation of a job beside a sum.
func (c *unified) turn(sum []float64, job int) (best int, excess float64) {
	excess = math.Inf(1)
	for p := range c.turns[job] {
		if e := c.beside(sum, job, p, excess); e < excess-slight*c.capacity {
			best, excess = p, e
			if e <= c.least+slight*c.capacity {
				break
			}
		}
	}
	return best, excess
}

// search tries every rotation of the second and third job against the first.
func (c *unified) search(at []int) {
	clear(c.sum)
	c.add(c.sum, 0, 0, 1)
	if len(at) < 3 {
		for j := 1; j < len(at); j++ {
			at[j], _ = c.turn(c.sum, j)
		}
		return
	}
	best := math.Inf(1)
	for p := range c.turns[1] {
		c.add(c.sum, 1, p, 1)
		if q, e := c.turn(c.sum, 2); e < best-slight*c.capacity {
			at[1], at[2], best = p, q, e
		}
		c.add(c.sum, 1, p, -1)
		if best <= c.least+slight*c.capacity {
			return
		}
	}
}

// mostSweeps ends a descent that keeps finding a little.
const mostSweeps = 20

// descend adds the jobs one by one where each fits best, then turns one at a time, and
// two where none helps, until that does not either: a local optimum.
func (c *unified) descend(at []int) {
	clear(c.sum)
	c.add(c.sum, 0, 0, 1)
	excess := 0.0
	for j := 1; j < len(at); j++ {
		at[j], excess = c.turn(c.sum, j)
		c.add(c.sum, j, at[j], 1)
	}
	for range mostSweeps {
		before := excess
		for j := 1; j < len(at); j++ {
			c.add(c.sum, j, at[j], -1)
			if p, e := c.turn(c.sum, j); e < excess-slight*c.capacity {
				at[j], excess = p, e
			}
			c.add(c.sum, j, at[j], 1)
		}
		if excess >= before-slight*c.capacity {
			if excess = c.turnTwo(at, excess); excess >= before-slight*c.capacity {
				return
			}
		}
	}
}

// turnTwo turns two jobs at once where no turn of one helps, the first two with which
// that does, and returns the excess. It is left where there is too much to try.
func (c *unified) turnTwo(at []int, excess float64) float64 {
	pairs := (len(at) - 1) * (len(at) - 2) / 2
	if most := slices.Max(c.turns); excess <= c.least+slight*c.capacity || pairs*most*most*len(c.sum) > mostTrials {
		return excess
	}
	for i := 1; i < len(at); i++ {
		for j := i + 1; j < len(at); j++ {
			c.add(c.sum, i, at[i], -1)
			c.add(c.sum, j, at[j], -1)
			before := excess
			for p := range c.turns[i] {
				c.add(c.sum, i, p, 1)
				if q, e := c.turn(c.sum, j); e < excess-slight*c.capacity {
					at[i], at[j], excess = p, q, e
				}
				c.add(c.sum, i, p, -1)
			}
			c.add(c.sum, i, at[i], 1)
			c.add(c.sum, j, at[j], 1)
			if excess < before {
				return excess
			}
		}
	}
	return excess
}
