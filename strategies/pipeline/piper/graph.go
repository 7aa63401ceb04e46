package piper

import (
	"math"
	"slices"
)

// Graph is a model as Piper sees it: nodes, each with ways to run on so many devices, and edges
// between them. A plan puts sets of nodes on stages so that all edges go forwards.
type Graph struct {
	Nodes   int
	Edges   []Edge
	Tensors []int // degrees of tensor parallelism that are tried
	// Replicas are the degrees of data parallelism that are tried.
	Replicas []int
	// Configs are the ways to run a node split over so many devices, in a stage of so many
	// replicas; none means that it cannot.
	Configs func(node, tensor, replicas int) []Config
	Devices int
	// Unit is how many devices are handed out at a time; 0 is one.
	Unit         int
	Memory       float64 // of a device, in bytes; 0 is endless
	Bandwidth    float64 // of a device to others, in bytes by unit of time; 0 is endless
	Microbatches int     // of a step
	// Turns says that replicas take microbatches in turn, as published: a stage of d replicas
	// holds an s-th of d of them where s replicas stand in it and behind it. Otherwise each
	// replica takes its part of all, and a stage holds one for each stage from it on.
	Turns bool
}

// Edge goes from one node to another.
type Edge struct{ From, To int }

// Config is a way to run a node.
type Config struct {
	Time   float64 // of both passes of a microbatch, which the replicas share
	Params float64 // bytes that replicas exchange in a step
	Each   float64 // bytes held for a microbatch under way
	Fixed  float64 // bytes held besides
	// In and Out are the bytes that come from and go to neighbours in other stages.
	In, Out []Port
}

// Port is what passes between a node and a neighbour.
type Port struct {
	Node  int
	Bytes float64
}

// Stage is nodes that stand together, and how each runs.
type Stage struct {
	Nodes            []int
	Tensor, Replicas int
	Configs          []int // by node of Nodes
}

// counts is what a stage of so many replicas adds to the sum that decides how many microbatches
// are under way.
func (g *Graph) counts(replicas int) int {
	if g.Turns {
		return replicas
	}
	return 1
}

// kept is how many microbatches a stage holds with such a sum from it on, under 1F1B: when it has
// done one backwards, the next comes forwards. There are never more than a step has.
func (g *Graph) kept(sum, replicas int) int {
	if g.Turns {
		sum = (sum + replicas - 1) / replicas
	}
	return min(sum, g.Microbatches)
}

// contribution is what a node adds to the time that its stage takes of each microbatch.
func (g *Graph) contribution(c *Config, replicas int, outside func(node int) bool) float64 {
	if g.Bandwidth == 0 {
		return c.Time
	}
	d, bytes := float64(replicas), 0.0
	for _, ports := range [][]Port{c.In, c.Out} {
		for _, p := range ports {
			if p.Bytes > 0 && outside(p.Node) {
				bytes += 2 * p.Bytes / d
			}
		}
	}
	// Replicas exchange over a server that is spread over them, as in PipeDream's planner.
	bytes += 4 * (d - 1) * c.Params / d / float64(g.Microbatches)
	// Nothing of it is hidden behind the passes: that is for the simulation to say.
	return c.Time + bytes/g.Bandwidth
}

// Evaluate is the check of the program by other means. It tells what the slowest stage takes of a microbatch, counted anew from the stages
// alone; Inf where they do not fit.
func (g *Graph) Evaluate(stages []Stage) (slowest float64) {
	sum, used := 0, 0
	for i := len(stages) - 1; i >= 0; i-- {
		s := &stages[i]
		sum += g.counts(s.Replicas)
		used += s.Tensor * s.Replicas
		takes, held, y := 0.0, 0.0, float64(g.kept(sum, s.Replicas))
		for k, n := range s.Nodes {
			c := g.Configs(n, s.Tensor, s.Replicas)[s.Configs[k]]
			takes += g.contribution(&c, s.Replicas, func(other int) bool { return !slices.Contains(s.Nodes, other) })
			held += c.Each*y + c.Fixed
		}
		if g.Memory > 0 && held > g.Memory {
			return math.Inf(1)
		}
		slowest = max(slowest, takes)
	}
	if used > g.Devices {
		return math.Inf(1)
	}
	return slowest
}
