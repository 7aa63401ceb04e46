package pipeline

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/mechanism/taskgraph"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Stage is what one microbatch takes and leaves on one stage, on the profiled device.
type Stage struct {
	Forward, Input, Weight unit.Duration
	ParamKiB               int64 // one copy of its parameters
	StateKiB               int64 // what else it holds for them, besides the copies that Params say
	OutputKiB              int64 // sent to the next stage, and as much comes back
	ActivationKiB          int64 // kept from the forward pass until the last of the backward ones
}

// Of is how long a pass of a kind takes.
func (s *Stage) Of(k Kind) unit.Duration {
	switch k {
	case Backward:
		return s.Input + s.Weight
	case Input:
		return s.Input
	case Weight:
		return s.Weight
	case Recompute:
		return s.Forward
	}
	return share(k, s.Forward)
}

// Costs are what a schedule is timed with.
type Costs struct {
	Stages []Stage
	Params // Speeds are those of the ranks
	// Varies, where it is set, is how many times as long a pass of a rank takes as its stage says.
	// Only Time looks at it: whoever orders passes does not know it.
	Varies func(rank int, op Op) float64
}

// Link is a way from one device to another; zero Bandwidth is unlimited.
type Link struct {
	Bandwidth unit.Mbps
	Latency   unit.Duration
}

// Takes is how long so much is under way, where nothing else is.
func (l Link) Takes(kib int64) unit.Duration {
	if l.Bandwidth == 0 {
		return l.Latency
	}
	// A megabit per second is a bit per microsecond.
	return l.Latency + unit.Duration(math.Ceil(float64(kib)*8*1024/float64(l.Bandwidth)))
}

// Link is the way from one rank to another.
func (p *Params) Link(from, to int) Link {
	if p.Links == nil {
		return Link{p.Bandwidth, p.Latency}
	}
	return p.Links[from][to]
}

// Like are the costs of so many stages of which nothing is known: the three kinds of pass
// take equally long, and each microbatch keeps one KiB on each stage.
func Like(stages int) Costs {
	c := Costs{Stages: make([]Stage, stages)}
	for i := range c.Stages {
		c.Stages[i] = Stage{Forward: 1, Input: 1, Weight: 1, ActivationKiB: 1}
	}
	return c
}

// takes is how long a rank is at work on an operation and, where it is paired, the next.
func (c *Costs) takes(rank int, ops []Op) unit.Duration {
	d := c.pass(rank, ops[0])
	if !ops[0].Paired {
		return d
	}
	other := c.pass(rank, ops[1])
	if c.Together == 0 {
		return d + other
	}
	return max(d, other, unit.Duration(math.Round(c.Together*float64(d+other))))
}

// pass is how long a rank is at work on one operation alone.
func (c *Costs) pass(rank int, op Op) unit.Duration {
	d := c.Compute(c.Stages[op.Stage].Of(op.Kind), rank)
	if c.Varies != nil {
		d = unit.Duration(math.Round(float64(d) * c.Varies(rank, op)))
	}
	return d
}

// Span is from when to when something ran.
type Span struct{ Start, End unit.Time }

// Timing is what became of a schedule.
type Timing struct {
	Makespan unit.Duration
	// Spans are per rank and operation. Two that are paired have the same.
	Spans [][]Span
	// Transfers are those between ranks whose link takes time, by stage and microbatch.
	Transfers []Transfer
	// Busy is how long each rank computed, Bubble how long it did nothing between its first
	// pass and its last.
	Busy, Bubble []unit.Duration
	// Peak is each rank's memory at the instant at which it held most.
	Peak []Memory
	// Critical are the passes that the makespan consists of, each of which waited for the one
	// before or for what that one sent.
	Critical []Pass
}

// Pass is one in a schedule: the rank, and which of its order.
type Pass struct{ Rank, At int32 }

// Idle is how long a rank did nothing in the whole iteration.
func (t *Timing) Idle(rank int) unit.Duration { return t.Makespan - t.Busy[rank] }

// IdleShare is the part of the ranks' time in which they did nothing, 0..1.
func (t *Timing) IdleShare() float64 {
	if t.Makespan == 0 {
		return 0
	}
	busy := 0.0
	for _, b := range t.Busy {
		busy += float64(b)
	}
	return 1 - busy/(float64(t.Makespan)*float64(len(t.Busy)))
}

// Windows is into how many stretches what a rank is idle in the whole iteration falls.
func (t *Timing) Windows(rank int) (n int) {
	at := unit.Time(0)
	for _, s := range t.Spans[rank] {
		if s.Start > at {
			n++
		}
		at = max(at, s.End)
	}
	if unit.Time(0).Add(t.Makespan) > at {
		n++
	}
	return n
}

// Spare is what a schedule leaves of its ranks' time.
func (t *Timing) Spare() workload.Spare {
	idle, windows := 0.0, 0
	for r := range t.Spans {
		idle, windows = idle+float64(t.Idle(r)), windows+t.Windows(r)
	}
	return Spare(idle, float64(windows), float64(len(t.Spans))*float64(t.Makespan))
}

// Spare is what is left of devices that are idle for so long of so much time, in so many windows.
func Spare(idle, windows, of float64) (s workload.Spare) {
	if windows > 0 && of > 0 {
		s.IdleMicro, s.Window = int64(math.Round(1e6*idle/of)), unit.Duration(math.Round(idle/windows))
	}
	return s
}

// Time runs a schedule through the task graph: ranks work in their order, a pass forward
// waits for the stage before, one backward for the stage after, and what goes to another
// rank takes the link between the two, one in each direction. Sending does not hold up the
// sender. Or it says why the schedule cannot run.
func (s *Schedule) Time(c Costs) (Timing, Why) {
	if why := s.Ready(&c); why != "" {
		return Timing{}, why
	}
	return s.Clock(c, s.Peaks(&c))
}

// Ready says what is wrong with a schedule that is to be timed with these costs.
func (s *Schedule) Ready(c *Costs) Why {
	if why := s.Check(); why != "" {
		return why
	}
	if len(c.Stages) != s.Stages() {
		return whyf("costs of %d stages for a schedule of %d: expected as many", len(c.Stages), s.Stages())
	}
	return ""
}

// Clock is Time of a schedule that is ready, and whose ranks are known to hold so much.
func (s *Schedule) Clock(c Costs, peaks []Memory) (Timing, Why) {
	g := newGraph(s, &c)
	line, err := taskgraph.Run(&g.Graph)
	if err != nil {
		return Timing{}, whyf("the orders cannot run: %v", err)
	}
	ranks := len(s.Orders)
	t := Timing{Makespan: line.Makespan, Busy: line.Busy[:ranks], Bubble: line.Idle[:ranks], Spans: make([][]Span, ranks), Peak: peaks}
	passes := make([]Pass, 0, len(line.Start)) // by their tasks, which were added rank by rank
	for r, order := range s.Orders {
		t.Spans[r] = make([]Span, len(order))
		for i := range order {
			if i == 0 || !order[i-1].Paired {
				passes = append(passes, Pass{int32(r), int32(i)})
			}
			t.Spans[r][i] = Span{line.Start[len(passes)-1], line.End[len(passes)-1]}
		}
	}
	t.Transfers = make([]Transfer, len(line.Start)-len(passes))
	for i := range t.Transfers {
		task := len(passes) + i
		t.Transfers[i] = Transfer{g.ends[int(g.Tasks[task].Resource)-ranks], Span{line.Start[task], line.End[task]}}
	}
	for _, step := range line.Critical {
		if int(step.Task) < len(passes) { // the others are transfers
			t.Critical = append(t.Critical, passes[step.Task])
		}
	}
	return t, ""
}

// graph is a schedule as tasks: first those of the ranks, then the transfers.
type graph struct {
	taskgraph.Graph
	s *Schedule
	c *Costs
	// task is the one that does a pass: forward, recompute, the first and the second half of
	// the backward pass, each by stage and microbatch. Of a forward pass in halves that is the
	// second of them, and half the first; -1 where it is whole, and none where all are.
	task  [4][]int32
	half  []int32
	links map[[2]int32]int32
	ends  [][2]int32 // of the links: from which rank to which
}

// slot is where task keeps the pass of a kind: what is awaited of a backward pass is its
// first half.
func slot(k Kind) int {
	switch k {
	case Backward:
		k = Input
	case SecondHalf:
		k = Forward
	}
	return strings.IndexByte("FRIW", byte(k))
}

func newGraph(s *Schedule, c *Costs) *graph {
	g := &graph{s: s, c: c, links: map[[2]int32]int32{}}
	g.Label = g.label
	n, m := s.Stages(), int(s.Microbatches)
	for k := range g.task {
		g.task[k] = make([]int32, n*m)
	}
	most := 5 * n * m // at most three passes and two transfers each, but for recomputing
	g.Tasks, g.Edges = make([]taskgraph.Task, 0, most), make([]taskgraph.Edge, 0, most)
	for r, order := range s.Orders {
		g.AddResource(taskgraph.Resource{Kind: taskgraph.Ordered})
		for i, op := range order {
			if i == 0 || !order[i-1].Paired {
				g.AddTask(taskgraph.Task{Resource: int32(r), Duration: c.takes(r, order[i:])})
			}
			if at := int(op.Stage)*m + int(op.Micro); op.Kind == FirstHalf {
				g.halve(at)
			} else {
				g.task[slot(op.Kind)][at] = int32(len(g.Tasks)) - 1
			}
		}
	}
	g.connect()
	return g
}

// halve has the newest task do the first half of a forward pass.
func (g *graph) halve(at int) {
	if g.half == nil {
		g.half = slices.Repeat([]int32{-1}, len(g.task[0]))
	}
	g.half[at] = int32(len(g.Tasks)) - 1
}

// connect makes each pass wait for those before it. Within a rank and a microbatch the order says so.
func (g *graph) connect() {
	n, m := int32(g.s.Stages()), g.s.Microbatches
	for stage := range n - 1 {
		for k := range m {
			here, there := g.s.Rank(stage, k), g.s.Rank(stage+1, k)
			at, on := stage*m+k, (stage+1)*m+k
			bytes := g.c.Stages[stage].OutputKiB << 10
			forward := bytes
			if g.half != nil && g.half[at] >= 0 {
				forward = share(SecondHalf, bytes)
				g.send(here, there, bytes-forward, g.half[at], g.half[on])
			}
			g.send(here, there, forward, g.task[0][at], g.task[0][on])
			g.send(there, here, bytes, g.task[2][on], g.task[2][at])
		}
	}
}

// send lets one task wait for another, over the link between their ranks where it takes time.
func (g *graph) send(from, to int32, bytes int64, before, after int32) {
	way := g.c.Link(int(from), int(to))
	if from == to || way == (Link{}) {
		g.Edges = append(g.Edges, taskgraph.Edge{Before: before, After: after})
		return
	}
	link, known := g.links[[2]int32{from, to}]
	if !known {
		link = g.AddResource(taskgraph.Resource{Kind: taskgraph.Fluid, Bandwidth: way.Bandwidth, Latency: way.Latency})
		g.links[[2]int32{from, to}] = link
		g.ends = append(g.ends, [2]int32{from, to})
	}
	t := g.AddTask(taskgraph.Task{Resource: link, Bytes: bytes}, before)
	g.Edges = append(g.Edges, taskgraph.Edge{Before: t, After: after})
}

// label names the task of a rank by what it does, for an error that speaks of it.
func (g *graph) label(task int32) string {
	for r, order := range g.s.Orders {
		for i, op := range order {
			if i > 0 && order[i-1].Paired {
				continue
			}
			if task == 0 {
				return "rank " + strconv.Itoa(r) + " " + op.String()
			}
			task--
		}
	}
	return "transfer " + strconv.Itoa(int(task))
}
