package taskgraph

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// What becomes of a task under the naive clock.
const (
	waits = iota
	runs
	travels
	over
)

// naive is the simplest possible clock, the oracle: it scans all tasks for what may
// start, gives all transfers new rates, and steps to the next end.
type naive struct {
	g       *Graph
	now     unit.Time
	order   []int32 // by priority and id
	before  [][]int32
	same    [][]int32 // per resource: the tasks that hold it
	parts   [][]int32 // per task
	state   []int
	left    []float64 // bits
	rate    []float64
	arrival []unit.Time
	seen    []bool // per resource: has been used
	first   []unit.Time
	last    []unit.Time
	held    []int64
	line    Timeline
}

func runNaive(g *Graph) Timeline {
	n, r := len(g.Tasks), len(g.Resources)
	c := &naive{g: g, before: make([][]int32, n), same: make([][]int32, r), parts: make([][]int32, n), state: make([]int, n), left: make([]float64, n),
		rate: make([]float64, n), arrival: make([]unit.Time, n), seen: make([]bool, r), first: make([]unit.Time, r), last: make([]unit.Time, r)}
	c.line = Timeline{Start: make([]unit.Time, n), End: make([]unit.Time, n), Busy: make([]unit.Duration, r), Idle: make([]unit.Duration, r)}
	pools := len(g.Pools)
	for t := range g.Tasks {
		c.order = append(c.order, int32(t))
		c.parts[t] = g.held(int32(t))
		for _, p := range c.parts[t] {
			c.same[p] = append(c.same[p], int32(t))
		}
		pools = max(pools, int(g.Tasks[t].Pool)+1)
	}
	c.held, c.line.PeakKiB = make([]int64, pools), make([]int64, pools)
	slices.SortStableFunc(c.order, func(a, b int32) int { return cmp.Compare(g.Tasks[a].Priority, g.Tasks[b].Priority) })
	for _, e := range g.Edges {
		c.before[e.After] = append(c.before[e.After], e.Before)
	}
	for c.step() {
	}
	for i := range r {
		if c.seen[i] {
			c.line.Idle[i] = c.last[i].Sub(c.first[i]) - c.line.Busy[i]
		}
	}
	c.line.Makespan = unit.Duration(slices.Max(append(slices.Clone(c.line.End), 0)))
	return c.line
}

// step starts what may start and goes to the next end.
func (c *naive) step() bool {
	for _, t := range c.order {
		if c.state[t] == waits && c.may(t) {
			c.start(t)
		}
	}
	c.share()
	wait := math.Inf(1)
	for t := range c.state {
		switch {
		case c.state[t] == travels || c.state[t] == runs && !c.g.overLinks(int32(t)):
			wait = min(wait, float64(c.arrival[t].Sub(c.now)))
		case c.state[t] == runs && c.rate[t] > 0:
			wait = min(wait, max(0, math.Ceil(c.left[t]/c.rate[t]-1e-3)))
		}
	}
	if math.IsInf(wait, 1) {
		return false
	}
	c.pass(unit.Duration(wait))
	for t := range c.state {
		if c.state[t] == travels && c.arrival[t] == c.now {
			c.end(int32(t))
		} else if c.state[t] == runs && !c.g.overLinks(int32(t)) && c.arrival[t] == c.now {
			c.leave(int32(t), 0)
		}
	}
	for c.deliver() {
		c.share()
	}
	return true
}

func (c *naive) may(t int32) bool {
	for _, b := range c.before[t] {
		if c.state[b] != over {
			return false
		}
	}
	for _, p := range c.parts[t] {
		r, used := &c.g.Resources[p], int32(0)
		if r.Kind == Fluid {
			continue
		}
		for _, other := range c.same[p] {
			if c.state[other] == runs {
				used++
			}
			if r.Kind == Ordered && other < t && c.state[other] == waits {
				return false
			}
		}
		if used >= max(1, r.Slots) {
			return false
		}
	}
	return true
}

func (c *naive) start(t int32) {
	task := &c.g.Tasks[t]
	c.state[t], c.line.Start[t] = runs, c.now
	c.arrival[t], c.left[t] = c.now.Add(task.Duration), 8*float64(task.Bytes)
	c.count(task.Pool, task.AllocKiB)
	if len(c.g.Memory) > 0 {
		for _, m := range c.g.Memory[task.Memory] {
			c.count(m.Pool, m.AllocKiB)
		}
	}
	for _, p := range c.parts[t] {
		if c.occupies(t, p) && !c.seen[p] {
			c.seen[p], c.first[p] = true, c.now
		}
	}
}

// occupies is whether a task, as long as it runs, occupies a part: a link does not
// notice what moves nothing, one without limit nothing at all.
func (c *naive) occupies(t, p int32) bool {
	r := &c.g.Resources[p]
	return r.Kind != Fluid || r.Bandwidth > 0 && c.g.Tasks[t].Bytes > 0
}

// count changes what a pool and those it is part of hold.
func (c *naive) count(p int32, kib int64) {
	c.held[p] += kib
	c.line.PeakKiB[p] = max(c.line.PeakKiB[p], c.held[p])
	for whole := range c.g.Pools {
		if slices.Contains(c.g.Pools[whole].Parts, p) {
			c.count(int32(whole), kib)
		}
	}
}

// share gives the transfers max-min rates: class by class, the link with the least
// left for each of its transfers fixes theirs, again and again.
func (c *naive) share() {
	room := make([]float64, len(c.g.Resources))
	for i := range room {
		room[i] = float64(c.g.Resources[i].Bandwidth)
	}
	var open []int32
	for t := range c.rate {
		if c.rate[t] = 0; c.state[t] == runs && c.g.overLinks(int32(t)) {
			open = append(open, int32(t))
		}
	}
	for len(open) > 0 {
		class := c.g.Tasks[open[0]].Priority
		for _, t := range open {
			class = min(class, c.g.Tasks[t].Priority)
		}
		least, tightest := math.Inf(1), int32(-1)
		for p := range room {
			users := 0
			for _, t := range open {
				if c.g.Tasks[t].Priority == class && c.limits(t, int32(p)) {
					users++
				}
			}
			if each := room[p] / float64(users); users > 0 && each < least {
				least, tightest = each, int32(p)
			}
		}
		open = slices.DeleteFunc(open, func(t int32) bool {
			if c.g.Tasks[t].Priority != class || tightest >= 0 && !c.limits(t, tightest) {
				return false
			}
			c.rate[t] = least
			for _, p := range c.parts[t] {
				if c.limits(t, p) {
					room[p] = max(0, room[p]-least)
				}
			}
			return true
		})
		if tightest >= 0 {
			room[tightest] = 0
		}
	}
}

// limits is whether a part is a link that limits a task's rate.
func (c *naive) limits(t, p int32) bool {
	return c.g.Resources[p].Kind == Fluid && c.occupies(t, p) && slices.Contains(c.parts[t], p)
}

// pass lets time go by.
func (c *naive) pass(d unit.Duration) {
	for p := range c.same {
		if slices.ContainsFunc(c.same[p], func(t int32) bool {
			return c.state[t] == runs && c.occupies(t, int32(p)) && (c.g.Resources[p].Kind != Fluid || c.rate[t] > 0)
		}) {
			c.line.Busy[p] += d
		}
	}
	for t := range c.left {
		if c.rate[t] > 0 && !math.IsInf(c.rate[t], 1) {
			c.left[t] -= c.rate[t] * float64(d)
		}
	}
	c.now = c.now.Add(d)
}

// deliver lets the first transfer go that is over.
func (c *naive) deliver() bool {
	for t := range c.state {
		if c.state[t] != runs || !c.g.overLinks(int32(t)) || c.rate[t] == 0 || c.left[t]/c.rate[t] > 1e-3 {
			continue
		}
		latency := unit.Duration(0)
		for _, p := range c.parts[t] {
			latency += c.g.Resources[p].Latency
		}
		c.leave(int32(t), latency)
		return true
	}
	return false
}

func (c *naive) leave(t int32, latency unit.Duration) {
	for _, p := range c.parts[t] {
		if c.occupies(t, p) {
			c.last[p] = c.now
		}
	}
	if c.rate[t], c.state[t], c.arrival[t] = 0, travels, c.now.Add(latency); latency == 0 {
		c.end(t)
	}
}

func (c *naive) end(t int32) {
	task := &c.g.Tasks[t]
	c.state[t], c.line.End[t] = over, c.now
	c.count(task.Pool, -task.FreeKiB)
	if len(c.g.Memory) > 0 {
		for _, m := range c.g.Memory[task.Memory] {
			c.count(m.Pool, -m.FreeKiB)
		}
	}
}

// held are the resources that a task holds.
func (g *Graph) held(t int32) []int32 {
	r := g.Tasks[t].Resource
	if g.Resources[r].Kind == Joint {
		return g.Resources[r].Parts
	}
	return []int32{r}
}

// overLinks tells a transfer.
func (g *Graph) overLinks(t int32) bool {
	return slices.ContainsFunc(g.held(t), func(r int32) bool { return g.Resources[r].Kind == Fluid })
}
