package piper

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// mostSets bounds the downsets of a graph: of more, there is no plan.
const mostSets = 40_000

// set is nodes, a bit each.
type set []uint64

// has reports whether a node is in it.
func (s set) has(n int) bool { return s[n/64]>>(n%64)&1 == 1 }

// with is the set with one more node. The set itself stays as it is, as others share it.
func (s set) with(n int) set {
	more := slices.Clone(s)
	more[n/64] |= 1 << (n % 64)
	return more
}

// without are its nodes that are not in another set, ascending, so that sums of what they take
// come out the same to the last bit wherever they are made.
func (s set) without(o set) (nodes []int) {
	for i := range s {
		for left := s[i] &^ o[i]; left != 0; left &= left - 1 {
			nodes = append(nodes, i*64+bits.TrailingZeros64(left))
		}
	}
	return nodes
}

// key is different for two sets.
func (s set) key() string {
	b := make([]byte, 0, 8*len(s))
	for _, w := range s {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return string(b)
}

// Solver is the program over downsets, devices and sums of data-parallel degrees: best[D][k][s]
// is what the slowest stage takes if the nodes of D, with which all that come behind a node are
// too, run on at most k devices with a sum of at most s.
type Solver struct {
	g    *Graph
	sets []set   // the smaller first; the first is empty, the last whole
	subs [][]int // of each set those in it
	best []float64
	// drops are, by set and devices, the sums at which best falls: no other needs to be tried.
	drops     [][]int32
	units, to int // most units of devices, and most of a sum
	degrees   []degree
	c         choices // used again and again
}

// Solve fills the program, for sums up to so many. A plan is made from its end: the nodes of a
// set stand on the last stages, and a stage in front of those is what a larger set has besides.
// What is under way at a stage depends on the stages behind it alone, which is why the sum of
// their degrees is all that has to be remembered of them.
func Solve(g *Graph, sums int) (*Solver, error) {
	v := &Solver{g: g, to: sums, units: g.Devices / max(1, g.Unit)}
	if err := v.grow(); err != nil {
		return nil, err
	}
	v.spread()
	v.best = slices.Repeat([]float64{math.Inf(1)}, len(v.sets)*(v.units+1)*(v.to+1))
	v.drops = make([][]int32, len(v.sets)*(v.units+1))
	for k := range v.units + 1 {
		for s := range v.to + 1 {
			v.best[v.at(0, k, s)] = 0
		}
		v.drops[k] = []int32{0}
	}
	// The sets in a set are smaller, so that they are done when it comes.
	for id := 1; id < len(v.sets); id++ {
		for _, sub := range v.subs[id] {
			v.each(id, sub, func(c *choices) bool { v.join(id, sub, c); return true })
		}
		v.close(id)
	}
	return v, nil
}

// at is where best[id][k][s] stands: one slice for all, as the program reads it most of its time.
func (v *Solver) at(id, k, s int) int { return (id*(v.units+1)+k)*(v.to+1) + s }

// grow lists the downsets and what each holds. Of a chain they are its ends, as many as it has
// nodes; of a graph with branches there are as many as ways to be done with a part of each.
func (v *Solver) grow() error {
	g := v.g
	behind := make([][]int, g.Nodes)
	for _, e := range g.Edges {
		behind[e.From] = append(behind[e.From], e.To)
	}
	empty := make(set, (g.Nodes+63)/64)
	ids := map[string]int{empty.key(): 0}
	v.sets, v.subs = []set{empty}, [][]int{nil}
	for id := 0; id < len(v.sets); id++ { // by size, as each adds one node
		if len(v.sets) > mostSets {
			return fmt.Errorf("the graph of %d nodes has more than %d downsets: expected one nearer to a chain", g.Nodes, mostSets)
		}
		for n := range g.Nodes {
			if v.sets[id].has(n) || slices.ContainsFunc(behind[n], func(to int) bool { return !v.sets[id].has(to) }) {
				continue
			}
			more := v.sets[id].with(n)
			key := more.key()
			if _, known := ids[key]; !known {
				ids[key] = len(v.sets)
				v.sets, v.subs = append(v.sets, more), append(v.subs, nil)
			}
			v.subs[ids[key]] = append(v.subs[ids[key]], id)
		}
	}
	// What was found are the sets with one node less; those in them are in the set too.
	seen := slices.Repeat([]int{-1}, len(v.sets))
	direct := v.subs
	v.subs = make([][]int, len(v.sets))
	for id := range v.sets {
		all := slices.Clone(direct[id])
		for i := 0; i < len(all); i++ {
			for _, sub := range direct[all[i]] {
				if seen[sub] != id {
					seen[sub], all = id, append(all, sub)
				}
			}
		}
		slices.Sort(all)
		v.subs[id] = slices.Compact(all)
	}
	return nil
}

// each calls with the nodes of one set that are not in another as a stage, for each degree. It
// goes on as long as the function wants more, and uses what it gave again.
func (v *Solver) each(id, sub int, f func(c *choices) bool) {
	nodes := v.sets[id].without(v.sets[sub])
	outside := func(n int) bool { return !v.sets[id].has(n) || v.sets[sub].has(n) }
	for i := range v.degrees {
		at := &v.degrees[i]
		v.c.nodes, v.c.degree = nodes, at
		if v.c.fill(v.g, outside) && !f(&v.c) {
			return
		}
	}
}

// degree is how a stage is spread, and the ways of all nodes that it has then.
type degree struct {
	tensor, replicas int
	units, counts    int // what it takes of the devices and of the sum
	configs          [][]Config
}

// spread lists the degrees that the devices allow. Ways are asked for once for each, as the
// program comes by the same node and degree once for every pair of sets.
func (v *Solver) spread() {
	g, unit := v.g, max(1, v.g.Unit)
	for _, t := range g.Tensors {
		for _, d := range g.Replicas {
			if t*d > g.Devices || t*d%unit != 0 || g.counts(d) > v.to {
				continue
			}
			at := degree{tensor: t, replicas: d, units: t * d / unit, counts: g.counts(d)}
			for n := range g.Nodes {
				at.configs = append(at.configs, g.Configs(n, t, d))
			}
			v.degrees = append(v.degrees, at)
		}
	}
}

// choices are the ways of the nodes of a stage, by what they add to its time and what they hold.
type choices struct {
	*degree
	g       *Graph
	nodes   []int
	items   []item
	by      [][]item  // the items of each node
	fastest float64   // nothing takes less
	takes   []float64 // by what is under way; 0 where it was not asked for
}

// fill fills them in for what is outside of the stage, to whose nodes something is sent, and reports whether all nodes can run so.
func (c *choices) fill(g *Graph, outside func(int) bool) bool {
	c.g, c.items, c.by, c.takes, c.fastest = g, c.items[:0], c.by[:0], c.takes[:0], 0
	for _, n := range c.nodes {
		if len(c.configs[n]) == 0 {
			return false
		}
		least := math.Inf(1)
		for i := range c.configs[n] {
			takes := g.contribution(&c.configs[n][i], c.replicas, outside)
			c.items = append(c.items, item{time: takes})
			least = min(least, takes)
		}
		c.fastest += least
	}
	// Only now, as items does not move any more.
	first := 0
	for _, n := range c.nodes {
		end := first + len(c.configs[n])
		c.by, first = append(c.by, c.items[first:end]), end
	}
	return true
}

// pack is what the stage takes with such a sum from it on.
func (c *choices) pack(sum int, choice []int) float64 {
	y := c.g.kept(sum, c.replicas)
	for i, n := range c.nodes {
		for w := range c.by[i] {
			c.by[i][w].held = c.configs[n][w].Each*float64(y) + c.configs[n][w].Fixed
		}
	}
	return pack(c.by, c.g.Memory, choice)
}

// at is pack, kept. Sums that differ may have as many microbatches under way, and devices do not
// matter to a knapsack at all.
func (c *choices) at(sum int) float64 {
	y := c.g.kept(sum, c.replicas)
	for len(c.takes) <= y {
		c.takes = append(c.takes, 0)
	}
	if c.takes[y] == 0 {
		c.takes[y] = c.pack(sum, nil)
	}
	return c.takes[y]
}

// join tries a stage in front of each best of the nodes behind it. The knapsack, which is what
// takes long, is asked only where the fastest ways of all nodes would be better than what is known.
func (v *Solver) join(id, sub int, c *choices) {
	// More devices may be left to the nodes behind: they are tried with as many as there are.
	for k := c.units; k <= v.units; k++ {
		row, behind := v.at(id, k, 0), v.at(sub, k-c.units, 0)
		for _, f := range v.drops[sub*(v.units+1)+k-c.units] {
			s := int(f) + c.counts
			if s > v.to {
				break
			}
			// The slowest of what is behind, and of the stage: as much at least.
			rest, takes := v.best[behind+int(f)], c.fastest
			if max(rest, takes) < v.best[row+s] {
				takes = c.at(s)
				v.best[row+s] = min(v.best[row+s], max(rest, takes))
			}
			if rest <= takes {
				break // the stage itself decides, and with a larger sum it is no faster
			}
		}
	}
}

// close makes what is possible with less possible with more, and finds the drops. Both axes are
// bounds: a plan may use fewer devices, and keep less under way, than it is allowed.
func (v *Solver) close(id int) {
	for k := range v.units + 1 {
		last := math.Inf(1)
		for s := range v.to + 1 {
			at := v.at(id, k, s)
			if k > 0 {
				v.best[at] = min(v.best[at], v.best[v.at(id, k-1, s)])
			}
			v.best[at] = min(v.best[at], last)
			if v.best[at] < last {
				v.drops[id*(v.units+1)+k] = append(v.drops[id*(v.units+1)+k], int32(s))
			}
			last = v.best[at]
		}
	}
}

// Best is what the slowest stage takes with at most such a sum, Inf where nothing fits.
func (v *Solver) Best(sum int) float64 { return v.best[v.at(len(v.sets)-1, v.units, sum)] }

// Stages are those of the best plan with at most such a sum, the first first. They are found by
// going through the program again from its last field: keeping who was best in every field would
// take several times the memory, and one plan passes through few of them. What is computed again
// comes out the same to the last bit, and so equality is all there is to ask for.
func (v *Solver) Stages(sum int) (stages []Stage) {
	id, k, s := len(v.sets)-1, v.units, sum
	for id != 0 {
		want := v.best[v.at(id, k, s)]
		// With how little is it as good? The field with less holds the stage itself.
		for k > 0 && v.best[v.at(id, k-1, s)] == want {
			k--
		}
		for s > 0 && v.best[v.at(id, k, s-1)] == want {
			s--
		}
		found := false
		for _, sub := range v.subs[id] {
			v.each(id, sub, func(c *choices) bool {
				if c.units > k || c.counts > s {
					return true
				}
				rest := v.best[v.at(sub, k-c.units, s-c.counts)]
				if max(rest, c.fastest) > want || max(rest, c.at(s)) != want {
					return true
				}
				// The knapsack again, for the choice: c is used for the next stage after this.
				one := Stage{Nodes: c.nodes, Tensor: c.tensor, Replicas: c.replicas, Configs: make([]int, len(c.nodes))}
				c.pack(s, one.Configs)
				stages = append(stages, one)
				id, k, s, found = sub, k-c.units, s-c.counts, true
				return false
			})
			if found {
				break
			}
		}
	}
	return stages
}
