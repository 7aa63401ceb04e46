package hydro

import (
	"fmt"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/taskgraph"
	"github.com/musterdl/muster/unit"
)

// train is some iterations of a pipeline: the order of the passes on every stage, what
// they take there, and what a transfer between stages takes.
type train struct {
	orders            [][]pipeline.Op
	forward, backward unit.Duration
	transfer          unit.Duration
	iterations        int
}

// timed is a train as a task graph: of each stage its passes in order. A stage does one
// thing at a time; passes come before a guest's pieces of work, but do not interrupt
// one that has begun.
type timed struct {
	graph  taskgraph.Graph
	passes [][]int32
}

// build lays out the train; stretch says by how much each pass differs from plan.
func (t *train) build(stretch func() float64) *timed {
	x := &timed{passes: make([][]int32, len(t.orders))}
	stages := int32(len(t.orders))
	for range stages {
		x.graph.AddResource(taskgraph.Resource{Kind: taskgraph.Prioritised})
	}
	for range 2 * stages {
		x.graph.AddResource(taskgraph.Resource{Kind: taskgraph.Fluid, Latency: t.transfer})
	}
	type pass struct {
		stage int32
		op    pipeline.Op
	}
	for range t.iterations {
		at := map[pass]int32{}
		for s, ops := range t.orders {
			for _, op := range ops {
				d := t.forward
				if op.Kind == pipeline.Backward {
					d = t.backward
				}
				id := x.graph.AddTask(taskgraph.Task{Resource: int32(s), Duration: unit.Duration(float64(d) * stretch())})
				if n := len(x.passes[s]); n > 0 {
					x.graph.Edges = append(x.graph.Edges, taskgraph.Edge{Before: x.passes[s][n-1], After: id})
				}
				x.passes[s] = append(x.passes[s], id)
				at[pass{int32(s), op}] = id
			}
		}
		for s, ops := range t.orders {
			for _, op := range ops {
				from, to := pass{int32(s) - 1, op}, pass{int32(s), op}
				if op.Kind == pipeline.Backward {
					from.stage = int32(s) + 1
				}
				if before, ok := at[from]; ok {
					link := stages + from.stage*2 + int32(op.Kind)%2
					sent := x.graph.AddTask(taskgraph.Task{Resource: link}, before)
					x.graph.Edges = append(x.graph.Edges, taskgraph.Edge{Before: sent, After: at[to]})
				}
			}
		}
	}
	return x
}

// gaps are the bubbles: of each stage, how long it stands idle after each pass but the
// last.
func (x *timed) gaps() ([][]unit.Duration, taskgraph.Timeline, error) {
	line, err := taskgraph.Run(&x.graph)
	if err != nil {
		return nil, line, fmt.Errorf("the passes of the pipeline: %w", err)
	}
	all := make([][]unit.Duration, len(x.passes))
	for s, ids := range x.passes {
		for i := 1; i < len(ids); i++ {
			all[s] = append(all[s], line.Start[ids[i]].Sub(line.End[ids[i-1]]))
		}
	}
	return all, line, nil
}

// fill adds a guest's pieces of work of one length: into each bubble as many as the
// predicted length has room for, less a guard; the guest pauses for the rest. With a
// negative guard it begins another piece although it does not fit.
func (x *timed) fill(gaps [][]unit.Duration, piece, guard unit.Duration) {
	for s, ids := range x.passes {
		for i, gap := range gaps[s] {
			before := ids[i]
			for range (gap - guard) / piece {
				before = x.graph.AddTask(taskgraph.Task{Resource: int32(s), Priority: 1, Duration: piece}, before)
			}
		}
	}
}

// interleaved is what became of a pipeline with a guest in its bubbles.
type interleaved struct {
	slowdown float64 // of the pipeline
	used     float64 // part of the bubbles
}

// interleave predicts the bubbles from the plan, then runs a train that differs from
// the plan, with and without the guest.
func (t *train) interleave(piece, guard unit.Duration, stretch func() func() float64) (interleaved, error) {
	gaps, _, err := t.build(func() float64 { return 1 }).gaps()
	if err != nil {
		return interleaved{}, err
	}
	alone, shared := t.build(stretch()), t.build(stretch())
	_, before, err := alone.gaps()
	if err != nil {
		return interleaved{}, err
	}
	shared.fill(gaps, piece, guard)
	last, busy, idle := func(line taskgraph.Timeline) (at unit.Time) {
		for _, ids := range shared.passes {
			at = max(at, line.End[ids[len(ids)-1]])
		}
		return at
	}, unit.Duration(0), unit.Duration(0)
	after, err := taskgraph.Run(&shared.graph)
	if err != nil {
		return interleaved{}, err
	}
	for s := range t.orders {
		idle += unit.Duration(last(before)) - before.Busy[s]
		busy += after.Busy[s] - before.Busy[s]
	}
	return interleaved{slowdown: float64(last(after))/float64(last(before)) - 1, used: float64(busy) / float64(idle)}, nil
}
