package pipeline

import (
	"slices"
	"strconv"

	"github.com/musterdl/muster/mechanism/taskgraph"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Simulate predicts one iteration of a plan and returns the plan with the
// prediction filled in, or why it cannot run: it is not a plan for these layers,
// its stages wait for one another, or it does not fit the devices.
func Simulate(layers []workload.Layer, plan Plan, p Params) (Plan, Why) {
	p.InFlight = nil // what the order itself says is simulated
	if why := p.Check(layers, int(plan.Stages)); why != "" {
		return plan, why
	}
	if why := plan.Check(len(layers)); why != "" {
		return plan, why
	}
	stages := plan.stages(layers)
	line, err := taskgraph.Run(graph(stages, &plan, &p))
	if err != nil {
		return plan, whyf("the orders cannot run: %v", err)
	}
	plan.Iteration, plan.PeakKiB = line.Makespan, make([]int64, plan.Stages)
	busy := 0.0
	for s := range stages {
		busy += float64(line.Busy[s])
		plan.PeakKiB[s] = p.ParamCopies*stages[s].ParamKiB + line.PeakKiB[s]
		if limit := int64(p.Memory) << 10; limit > 0 && plan.PeakKiB[s] > limit {
			return plan, whyf("stage %d needs %v of device memory, a device has %v: more stages or fewer microbatches in flight would help",
				s, unit.MiB((plan.PeakKiB[s]+1023)>>10), p.Memory)
		}
	}
	if plan.Bubble = 0; line.Makespan > 0 {
		plan.Bubble = 1 - busy/(float64(line.Makespan)*float64(plan.Stages))
	}
	return plan, ""
}

// Check says what is wrong with a plan for so many layers: its cuts must leave
// no stage empty, and each stage must pass every microbatch once forward and
// later once backward.
func (p *Plan) Check(layers int) Why {
	if p.Stages < 1 || p.Microbatches < 1 || int64(p.Stages)*int64(p.Microbatches) > mostPasses {
		return whyf("%d stages and %d microbatches: expected at least 1 of each and no more than %d in all", p.Stages, p.Microbatches, mostPasses)
	}
	if len(p.Cuts) != int(p.Stages)-1 || len(p.Orders) != int(p.Stages) {
		return whyf("%d cuts and %d orders for %d stages: expected %d and %d", len(p.Cuts), len(p.Orders), p.Stages, p.Stages-1, p.Stages)
	}
	before := int32(0)
	for i, cut := range p.Cuts {
		if cut <= before || int(cut) >= layers {
			return whyf("cut %d is at layer %d: expected more than %d and less than %d", i, cut, before, layers)
		}
		before = cut
	}
	for s := range p.Orders {
		if why := p.checkOrder(s); why != "" {
			return why
		}
	}
	return ""
}

func (p *Plan) checkOrder(s int) Why {
	if len(p.Orders[s]) != 2*int(p.Microbatches) {
		return whyf("stage %d has %d operations: expected %d, one F and one B per microbatch", s, len(p.Orders[s]), 2*p.Microbatches)
	}
	next := slices.Repeat([]Kind{Forward}, int(p.Microbatches))
	for i, op := range p.Orders[s] {
		if op.Micro < 0 || op.Micro >= p.Microbatches || op.Kind != next[op.Micro] {
			return whyf("stage %d, operation %d is %v: expected each of microbatches 0 to %d once as F and later once as B", s, i, op, p.Microbatches-1)
		}
		if next[op.Micro] = Backward; op.Kind == Backward {
			next[op.Micro] = 0
		}
	}
	return ""
}

// stages sums the profile over each stage; the output is that of the last layer.
func (p *Plan) stages(layers []workload.Layer) []workload.Layer {
	sum := make([]workload.Layer, p.Stages)
	s := 0
	for i, l := range layers {
		if s < len(p.Cuts) && i == int(p.Cuts[s]) {
			s++
		}
		sum[s].Forward += l.Forward
		sum[s].Backward += l.Backward
		sum[s].ParamKiB += l.ParamKiB
		sum[s].ActivationKiB += l.ActivationKiB
		sum[s].OutputKiB = l.OutputKiB
	}
	return sum
}

// graph is one iteration: a device per stage, then a link onwards and a link
// back between neighbours. A forward pass waits for the activations of the stage
// before, a backward pass for its own forward pass, which its order ensures, and
// for the gradient of the stage after, which is as large as the activations.
// Sending does not hold up the sender.
func graph(stages []workload.Layer, plan *Plan, p *Params) *taskgraph.Graph {
	n, m := int32(len(stages)), plan.Microbatches
	g := &taskgraph.Graph{
		Tasks: make([]taskgraph.Task, 0, 4*n*m),
		Edges: make([]taskgraph.Edge, 0, 4*n*m),
	}
	for range n {
		g.AddResource(taskgraph.Resource{Kind: taskgraph.Ordered})
	}
	for range 2 * (n - 1) {
		g.AddResource(taskgraph.Resource{Kind: taskgraph.Fluid, Bandwidth: p.Bandwidth, Latency: p.Latency})
	}
	task := make([]int32, 2*n*m) // of stage s: m forward, then m backward
	at := func(s int32, op Op) *int32 {
		if op.Kind == Backward {
			return &task[(2*s+1)*m+op.Micro]
		}
		return &task[2*s*m+op.Micro]
	}
	g.Label = func(t int32) string { // stage by stage, then the transfers
		if s := t / (2 * m); s < n {
			return "stage " + strconv.Itoa(int(s)) + " " + plan.Orders[s][t%(2*m)].String()
		}
		return "transfer " + strconv.Itoa(int(t-2*n*m))
	}
	for s := range n {
		forward := p.Compute(stages[s].Forward, int(s))
		backward := p.Compute(stages[s].Backward, int(s))
		for _, op := range plan.Orders[s] {
			t := taskgraph.Task{Resource: s, Pool: s}
			if op.Kind == Forward {
				t.Duration, t.AllocKiB = forward, stages[s].ActivationKiB
			} else {
				t.Duration, t.FreeKiB = backward, stages[s].ActivationKiB
			}
			*at(s, op) = g.AddTask(t)
		}
	}
	for s := range n - 1 {
		for k := range m {
			send(g, n+2*s, stages[s].OutputKiB, *at(s, Op{Forward, k}), *at(s+1, Op{Forward, k}))
			send(g, n+2*s+1, stages[s].OutputKiB, *at(s+1, Op{Backward, k}), *at(s, Op{Backward, k}))
		}
	}
	return g
}

// send puts a transfer between two passes. Its memory is part of what the
// receiver keeps.
func send(g *taskgraph.Graph, link int32, kib int64, from, to int32) {
	t := g.AddTask(taskgraph.Task{Resource: link, Bytes: kib << 10}, from)
	g.Edges = append(g.Edges, taskgraph.Edge{Before: t, After: to})
}
