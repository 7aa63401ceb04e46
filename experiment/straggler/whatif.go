package straggler

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/taskgraph"
	"github.com/musterdl/muster/model/unit"
)

// ticks are those of a second: the graph counts as finely as the traces are written.
const ticks = 1e12

// Cost is what slow workers cost. Steps are in seconds.
type Cost struct {
	// Measured is how long each step took, Run what it takes as a task graph, and Usual what it
	// takes where every operation takes as long as its kind does.
	Measured, Run, Usual []float64
	// Launch is Measured over Run, Slowdown Run over Usual, each of the means.
	Launch, Slowdown float64
	// By is the slowdown where only those of a group take as long as they did: by "dp_rank",
	// "stage" and "optype".
	By map[string]map[string]float64
	// Last and Worst are the parts of the slowdown that are gone when those of the last stage,
	// or of the three of a hundred workers that cost most, take as long as usual.
	Last, Worst float64
}

// timer runs steps with durations of its choice.
type timer struct {
	*Trace
	graph        *taskgraph.Graph  // of any step: only the durations differ
	took, usual  [][]unit.Duration // by step, as Trace.seen; the usual ones are of one step
	usualSeconds float64
}

// Cost analyses a trace.
func (t *Trace) Cost() (*Cost, error) {
	graph, parties := t.graph()
	x := &timer{Trace: t, graph: graph}
	x.measure(parties)
	c := &Cost{By: map[string]map[string]float64{}}
	for s := range t.steps {
		c.Measured = append(c.Measured, t.measured(s))
	}
	var err error
	if c.Run, err = x.steps(func(int) bool { return true }); err != nil {
		return nil, err
	}
	if c.Usual, err = x.steps(func(int) bool { return false }); err != nil {
		return nil, err
	}
	x.usualSeconds = mean(c.Usual)
	// What the graph does not know, such as loading data, is the launches' part.
	c.Launch, c.Slowdown = mean(c.Measured)/mean(c.Run), mean(c.Run)/x.usualSeconds
	for _, dim := range dimensions {
		c.By[dim.name] = map[string]float64{}
		for _, group := range x.groups(dim) {
			some, err := x.steps(func(i int) bool { return dim.of(t, i) == group })
			if err != nil {
				return nil, err
			}
			c.By[dim.name][group] = mean(some) / x.usualSeconds
		}
	}
	if c.Last, err = x.without(c, func(i int) bool { return t.ops[i%len(t.ops)].stage == t.stages-1 }); err != nil {
		return nil, err
	}
	worst := t.worst(c)
	c.Worst, err = x.without(c, func(i int) bool { return worst[t.worker(i)] })
	return c, err
}

// dimension is a way to group operations.
type dimension struct {
	name string
	of   func(t *Trace, i int) string
}

var dimensions = []dimension{
	{"dp_rank", func(t *Trace, i int) string { return fmt.Sprint(i / len(t.ops)) }},
	{"stage", func(t *Trace, i int) string { return fmt.Sprint(t.ops[i%len(t.ops)].stage) }},
	{"optype", func(t *Trace, i int) string {
		kind := t.ops[i%len(t.ops)].kind
		if group := known[kind].group; group != "" {
			return group
		}
		return kind
	}},
}

func (x *timer) groups(dim dimension) []string {
	all := map[string]bool{}
	for i := range x.seen[0] {
		all[dim.of(x.Trace, i)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// unready is how far a clock may be off: an exchange that seems over so long before the last
// was there takes no time.
const unready = 1e-2

// measure finds how long each operation took, of an exchange from when all were there, and how
// long those of its kind usually take: over all workers and steps the mean, of those that talk
// the median.
func (x *timer) measure(parties [][]int32) {
	all := map[string][]float64{}
	x.took = make([][]unit.Duration, len(x.seen))
	for s, list := range x.seen {
		seconds := make([]float64, len(list))
		for i := range list {
			seconds[i] = float64(list[i].duration)
		}
		for _, who := range parties {
			// Who came early waited: that is no part of what the exchange takes.
			began := float32(math.Inf(-1))
			for _, i := range who {
				began = max(began, list[i].start)
			}
			for _, i := range who {
				if seconds[i] = float64(list[i].end() - began); seconds[i] <= -unready {
					seconds[i] = 0
				}
			}
		}
		x.took[s] = make([]unit.Duration, len(list))
		for i, d := range seconds {
			x.took[s][i] = unit.Duration(math.Round(max(0, d) * ticks))
			kind := x.ops[i%len(x.ops)].kind
			all[kind] = append(all[kind], d)
		}
	}
	usual := map[string]unit.Duration{}
	for kind, list := range all {
		d := mean(list) // of passes, whose time is their worker's own doing
		if known[kind].talks {
			d = median(list) // a few that the network held up say nothing about the others
		}
		usual[kind] = unit.Duration(math.Round(float64(float32(d)) * ticks)) // the authors keep it in single precision
	}
	x.usual = [][]unit.Duration{make([]unit.Duration, len(x.seen[0]))}
	for i := range x.usual[0] {
		x.usual[0][i] = usual[x.ops[i%len(x.ops)].kind]
	}
}

// steps runs all steps, in which those that are chosen take as long as they did and the others
// as long as usual, and returns what each takes.
func (x *timer) steps(as func(i int) bool) ([]float64, error) {
	chosen := make([]bool, len(x.usual[0]))
	for i := range chosen {
		chosen[i] = as(i)
	}
	seconds := make([]float64, len(x.seen))
	for s := range x.seen {
		if s > 0 && !slices.Contains(chosen, true) { // all steps are as usual, and so alike
			seconds[s] = seconds[0]
			continue
		}
		for i := range chosen {
			x.graph.Tasks[i].Duration = x.usual[0][i]
			if chosen[i] {
				x.graph.Tasks[i].Duration = x.took[s][i]
			}
		}
		line, err := taskgraph.Run(x.graph)
		if err != nil {
			return nil, err
		}
		seconds[s] = float64(line.Makespan) / ticks
	}
	return seconds, nil
}

// without is the part of the slowdown that is gone when some take as long as usual.
func (x *timer) without(c *Cost, some func(i int) bool) (float64, error) {
	left, err := x.steps(func(i int) bool { return !some(i) })
	if err != nil {
		return 0, err
	}
	return (mean(c.Run) - mean(left)) / (mean(c.Run) - x.usualSeconds), nil
}

// measured is from the first operation of a step to the last.
func (t *Trace) measured(s int) float64 {
	first, last := float32(math.Inf(1)), float32(math.Inf(-1))
	for i := range t.seen[s] {
		first, last = min(first, t.seen[s][i].start), max(last, t.seen[s][i].end())
	}
	return float64(last - first)
}

// worker is a stage of a copy.
type worker struct{ stage, copy int }

func (t *Trace) worker(i int) worker { return worker{int(t.ops[i%len(t.ops)].stage), i / len(t.ops)} }

// worst are the three of a hundred workers that cost most: each as much as its copy or its
// stage alone, whichever is less. Of equals the earlier ones count.
func (t *Trace) worst(c *Cost) map[worker]bool {
	var all []worker
	for stage := range int(t.stages) {
		for k := range t.copies {
			all = append(all, worker{stage, k})
		}
	}
	// A worker is to blame for what both its copy and its stage cost: either alone may be
	// somebody else's doing.
	costs := func(w worker) float64 {
		return min(c.By["dp_rank"][fmt.Sprint(w.copy)], c.By["stage"][fmt.Sprint(w.stage)])
	}
	slices.SortStableFunc(all, func(a, b worker) int {
		switch x, y := costs(a), costs(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	worst := map[worker]bool{}
	for _, w := range all[:(3*len(all)+99)/100] {
		worst[w] = true
	}
	return worst
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

func median(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	// Of an even number it is between the two in the middle.
	return (list[(n-1)/2] + list[n/2]) / 2
}
