package overlap

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/mechanism/taskgraph"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Timing is what became of a plan.
type Timing struct {
	// Iteration is from the beginning of what is timed to its end: of a stage from the
	// beginning of a backward pass to that of the next, where one iteration is like another.
	Iteration unit.Duration
	// Compute and Exchange are how long the stage computed and the channel was in use, and
	// Overlap how long both at once.
	Compute, Exchange, Overlap unit.Duration
	// PeakKiB is the most that activations and gradients of outputs took at once.
	PeakKiB int64
}

// Exposed is how much longer the iteration is than what is computed in it.
func (t *Timing) Exposed() unit.Duration { return t.Iteration - t.Compute }

// The resources of every graph here.
const (
	stream int32 = iota
	channel
)

// newGraph is a graph of a stream and a channel, with room for so many tasks.
func newGraph(tasks int) *taskgraph.Graph {
	g := &taskgraph.Graph{Tasks: make([]taskgraph.Task, 0, tasks), Edges: make([]taskgraph.Edge, 0, 2*tasks)}
	g.AddResource(taskgraph.Resource{Name: "stream", Kind: taskgraph.Ordered})
	g.AddResource(taskgraph.Resource{Name: "channel", Kind: taskgraph.Ordered})
	return g
}

// run times a graph of a stream and a channel, of which one or the other is always at work:
// what waits, waits for the other.
func run(g *taskgraph.Graph) (Timing, pipeline.Why) {
	line, err := taskgraph.Run(g)
	if err != nil {
		return Timing{}, whyf("it cannot run: %v", err)
	}
	t := Timing{Iteration: line.Makespan, Compute: line.Busy[stream], Exchange: line.Busy[channel]}
	t.Overlap = t.Compute + t.Exchange - t.Iteration
	return t, ""
}

// message is one that has something to send.
type message struct {
	layers []int32
	takes  unit.Duration
	ready  int32 // the pass after which it can be sent
	last   int32 // the task when it has arrived
}

// Time runs a plan through the task graph, or says why it cannot.
func (p *Plan) Time(c *Costs) (Timing, pipeline.Why) {
	if why := cmp.Or(c.Check(), p.Check(len(c.Layers))); why != "" {
		return Timing{}, why
	}
	g, passes := newGraph(5*len(c.Layers)), p.Passes(len(c.Layers))
	computed, forward := make([]int32, len(c.Layers)), make([]int32, len(c.Layers))
	for _, op := range passes {
		task := g.AddTask(taskgraph.Task{Resource: stream, Duration: c.Layers[op.Stage].Of(op.Kind)})
		switch op.Kind {
		case pipeline.Weight:
			computed[op.Stage] = task
		case pipeline.Forward:
			forward[op.Stage] = task
		}
	}
	messages := p.messages(c, computed)
	for i := range messages {
		m := &messages[i]
		takes := m.takes
		if p.Split {
			takes /= 2
		}
		m.last = g.AddTask(taskgraph.Task{Resource: channel, Duration: takes}, m.ready)
	}
	if p.Split {
		slices.SortFunc(messages, func(a, b message) int { return cmp.Compare(slices.Min(a.layers), slices.Min(b.layers)) })
		for i := range messages {
			messages[i].last = g.AddTask(taskgraph.Task{Resource: channel, Duration: messages[i].takes - messages[i].takes/2})
		}
	}
	for _, m := range messages {
		if !p.Own {
			g.Edges = append(g.Edges, taskgraph.Edge{Before: m.last, After: forward[0]})
			continue
		}
		for _, l := range m.layers {
			if c.Layers[l].ParamKiB > 0 {
				g.Edges = append(g.Edges, taskgraph.Edge{Before: m.last, After: forward[l]})
			}
		}
	}
	t, why := run(g)
	t.PeakKiB = c.peakKiB(passes)
	return t, why
}

// messages are those that have something to send; computed is by layer the task of its
// gradients.
func (p *Plan) messages(c *Costs, computed []int32) []message {
	all, order := make([]message, 0, len(p.Sizes)), p.Order(len(c.Layers))
	for _, size := range p.Sizes {
		m, kib := message{layers: order[:size]}, int64(0)
		order = order[size:]
		for _, l := range m.layers {
			if own := c.Layers[l].ParamKiB; own > 0 {
				kib += own
				m.ready = computed[l] // the last is the latest
			}
		}
		if m.takes = c.Takes(kib); kib > 0 {
			all = append(all, m)
		}
	}
	return all
}

// peakKiB follows the passes. At first all activations are kept, and the gradient of the last
// output. What a layer keeps goes with the gradients of its weights, and the gradient of its
// output when both halves have used it.
func (c *Costs) peakKiB(passes []pipeline.Op) int64 {
	last := len(c.Layers) - 1
	now, halves := c.Layers[last].OutputKiB, make([]int, len(c.Layers))
	for _, l := range c.Layers {
		now += l.ActivationKiB
	}
	peak := now
	for _, op := range passes {
		switch {
		case op.Kind == pipeline.Input && op.Stage > 0:
			now += c.Layers[op.Stage-1].OutputKiB
			peak = max(peak, now)
		case op.Kind == pipeline.Weight:
			now -= c.Layers[op.Stage].ActivationKiB
		}
		if halves[op.Stage]++; halves[op.Stage] == 2 {
			now -= c.Layers[op.Stage].OutputKiB
		}
	}
	return peak
}

func whyf(format string, args ...any) pipeline.Why { return pipeline.Why(fmt.Sprintf(format, args...)) }
