package piper

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/musterdl/muster/model/figures"
)

// Read reads a graph in the format of Piper's own inputs, by its path in the folder of published data.
func Read(open figures.Open, path string) (*Graph, error) {
	var in struct {
		MaxDevices         int
		MaxMemoryPerDevice float64 // bytes
		Bandwidth          float64 // bytes by unit of time, of a device to others
		MbsInBatch         int     // microbatches of a step
		Nodes              []struct {
			ID    int
			TMPCs map[string][]published // by tensor degree
		}
		Edges []struct {
			SourceID, DestID  int
			CommunicationCost float64 // bytes
		}
	}
	if err := figures.FromJSON(open, path, &in); err != nil {
		return nil, err
	}
	g := &Graph{Nodes: len(in.Nodes), Devices: in.MaxDevices, Memory: in.MaxMemoryPerDevice, Bandwidth: in.Bandwidth, Microbatches: in.MbsInBatch, Turns: true}
	// Nodes are numbered as they stand in the file, whatever their ids are.
	number := map[int]int{}
	for i, n := range in.Nodes {
		number[n.ID] = i
	}
	cost := map[Edge]float64{}
	for i, e := range in.Edges {
		from, known := number[e.SourceID]
		to, too := number[e.DestID]
		if !known || !too {
			return nil, fmt.Errorf("edges[%d] from %d to %d: expected the ids of two nodes", i, e.SourceID, e.DestID)
		}
		g.Edges = append(g.Edges, Edge{from, to})
		cost[Edge{from, to}] = e.CommunicationCost
	}
	at := make([]map[int][]Config, g.Nodes) // by tensor degree, as one replica runs a microbatch
	for i, n := range in.Nodes {
		at[i] = map[int][]Config{}
		for degree, ways := range n.TMPCs {
			t, err := strconv.Atoi(degree)
			if err != nil || t < 1 {
				return nil, fmt.Errorf("nodes[%d].TMPCs: %q: expected a number of devices", i, degree)
			}
			for _, w := range ways {
				at[i][t] = append(at[i][t], w.config(g, i, cost, func(node int) int { return in.Nodes[node].ID }))
			}
			if !slices.Contains(g.Tensors, t) {
				g.Tensors = append(g.Tensors, t)
			}
		}
	}
	slices.Sort(g.Tensors)
	// All replicas do equally many microbatches of a step.
	for d := 1; d <= g.Microbatches; d++ {
		if g.Microbatches%d == 0 {
			g.Replicas = append(g.Replicas, d)
		}
	}
	g.share(at)
	return g, nil
}

// share makes the ways of several replicas from those of one: it gives each replica its part of what one would take.
func (g *Graph) share(at []map[int][]Config) {
	shared := map[[3]int][]Config{}
	g.Configs = func(node, tensor, replicas int) []Config {
		key := [3]int{node, tensor, replicas}
		if _, made := shared[key]; !made {
			shared[key] = nil
			for _, c := range at[node][tensor] {
				c.Time /= float64(replicas)
				shared[key] = append(shared[key], c)
			}
		}
		return shared[key]
	}
}

// published is a way to run a node, as Piper writes it: of a microbatch, memory as A bytes for
// each under way and B besides, and what is sent over an edge besides its own cost where the
// devices of the node have to agree first.
type published struct {
	TimePerSample, ParameterSize, MemoryUsageA, MemoryUsageB float64
	SyncTimeFw, SyncTimeBw                                   map[int]float64
}

// config is the way of a node whose edges cost so many bytes.
func (w *published) config(g *Graph, node int, cost map[Edge]float64, id func(node int) int) Config {
	c := Config{Time: w.TimePerSample, Params: w.ParameterSize, Each: w.MemoryUsageA, Fixed: w.MemoryUsageB}
	for _, e := range g.Edges {
		if e.To == node {
			c.In = append(c.In, Port{e.From, cost[e] + w.SyncTimeFw[id(e.From)]})
		}
		if e.From == node {
			c.Out = append(c.Out, Port{e.To, cost[e] + w.SyncTimeBw[id(e.To)]})
		}
	}
	return c
}
