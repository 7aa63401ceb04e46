package sites

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Simulated is the curve of a model that trains as one pipeline: each stage is a node, whose
// devices share its layers, and the layers are cut by the time that they take where they stand. A
// step is simulated over the links between the centres.
type Simulated struct {
	Network  *Network
	Model    *parallel.Model
	Kinds    []parallel.Device
	Out      unit.Mbps // of a node to others of its centre
	Sequence parallel.Sequence
	Samples  int // of a microbatch
}

var _ Curve = (*Simulated)(nil)

// devices are the nodes of some parts, a site for each part.
func (c *Simulated) devices(parts []Part) (on *parallel.Devices, ranks []parallel.Rank) {
	on = &parallel.Devices{Kinds: c.Kinds}
	for site, p := range parts {
		pool := &c.Network.Centres[p.Centre].Pools[p.Pool]
		var links []parallel.Link
		for _, other := range parts {
			links = append(links, c.Network.Ways[p.Centre][other.Centre].Link)
		}
		on.Sites = append(on.Sites, links)
		for range p.Stages {
			rank := parallel.Rank{Tensor: pool.Devices, Replicas: 1}
			for d := range pool.Devices {
				rank.Devices = append(rank.Devices, int32(pool.Devices*len(on.Nodes)+d))
			}
			ranks = append(ranks, rank)
			on.Nodes = append(on.Nodes, parallel.Node{Kind: pool.Kind, Count: int32(pool.Devices), Site: int32(site), Out: c.Out})
		}
	}
	return on.Index(), ranks
}

// Step cuts the layers and simulates a step. What a cut sends over a border is not looked at when
// it is made: the outputs of a transformer's blocks are all as large, and the border is where
// the last node of a centre is. What does not fit the memory of a node keeps less and computes more
// again, and has no step where nothing less can be kept.
func (c *Simulated) Step(parts []Part) (s Step, why pipeline.Why) {
	on, ranks := c.devices(parts)
	x := parallel.NewSimulator(c.Model, on)
	all, why := x.Ways(c.Model.Profile.Layers()/2, on.Nodes[0].Kind, ranks[0].Tensor, c.Samples)
	for way := range all {
		if s, why = c.step(x, parts, ranks, x.AllIn(int8(way), ranks[0].Tensor)); why == "" {
			return s, ""
		}
	}
	return Step{}, why
}

// step is with layers that run in some ways.
func (c *Simulated) step(x *parallel.Simulator, parts []Part, ranks []parallel.Rank, ways []int8) (Step, pipeline.Why) {
	sums, why := c.sums(x, ranks, ways)
	if why != "" {
		return Step{}, why
	}
	chain := pipeline.Chain{Layers: c.Model.Profile.Layers(), Link: func(_, _, _ int) unit.Duration { return 0 },
		Stage: func(s, first, end int) unit.Duration { return sums[s][end] - sums[s][first] }}
	p := parallel.Plan{Samples: c.Samples, Sequence: c.Sequence, Pipelines: []parallel.Pipeline{{Microbatches: c.Model.Batch / c.Samples, Ranks: ranks, Ways: ways}}}
	p.Pipelines[0].Cuts = chain.Slowest(len(ranks)).First
	r, why := x.Simulate(&p)
	if why != "" {
		return Step{}, why
	}
	s, last := Step{Takes: r.Step}, -1
	for _, part := range parts[:len(parts)-1] {
		last += part.Stages
		s.BorderGB = append(s.BorderGB, float64(r.Parts[0].Costs.Stages[last].OutputKiB)*1024/1e9*float64(p.Pipelines[0].Microbatches))
	}
	return s, ""
}

// sums are how long a microbatch takes of the first layers, for each rank and number of layers.
// Like neighbours share theirs.
func (c *Simulated) sums(x *parallel.Simulator, ranks []parallel.Rank, ways []int8) (all [][]unit.Duration, why pipeline.Why) {
	for r, rank := range ranks {
		if kind := x.On.Nodes[r].Kind; r > 0 && kind == x.On.Nodes[r-1].Kind && rank.Tensor == ranks[r-1].Tensor {
			all = append(all, all[r-1])
			continue
		}
		sum := make([]unit.Duration, c.Model.Profile.Layers()+1)
		for i := range sum[1:] {
			l, why := x.Layer(i, x.On.Nodes[r].Kind, rank.Tensor, c.Samples, ways)
			if why != "" {
				return nil, why
			}
			sum[i+1] = sum[i] + l.Forward + l.Again + l.Input + l.Weight
		}
		all = append(all, sum)
	}
	return all, ""
}

// Least is all passes of a step, each layer where it is fastest, divided evenly over the nodes: no
// rank waits, no gradient is exchanged and nothing is on its way. It is no closed form of a
// schedule, so that it bounds all of them.
func (c *Simulated) Least(parts []Part) unit.Duration {
	on, ranks := c.devices(parts)
	sums, why := c.sums(parallel.NewSimulator(c.Model, on), ranks, nil)
	if why != "" {
		return 0 // Step says why
	}
	fastest := unit.Duration(0)
	for i := range c.Model.Profile.Layers() {
		least := unit.Forever
		for _, sum := range sums {
			least = min(least, sum[i+1]-sum[i])
		}
		fastest += least
	}
	return fastest * unit.Duration(c.Model.Batch/c.Samples) / unit.Duration(len(ranks))
}
