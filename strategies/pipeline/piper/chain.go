package piper

import (
	"slices"

	"github.com/musterdl/muster/pipeline/parallel"
)

// chain is the model as a graph: what a layer costs comes from the simulator, so that the
// program and the simulation do not differ in it.
func (p *planning) chain(devices, copies, samples int) *Graph {
	x, layers := p.x, p.x.Model.Profile.Layers()
	g := &Graph{Nodes: layers, Devices: devices, Unit: 1, Memory: float64(x.On.Kinds[0].Room()) * (1 << 20), Microbatches: x.Model.Batch / copies / samples}
	// A copy on many devices is planned in larger pieces, each a power of two, as nodes are.
	for devices/g.Unit > mostUnits {
		g.Unit *= 2
	}
	// Who sends to whom is not known yet: the way from the first device to the last counts for all.
	g.Bandwidth = float64(x.On.Between([]int32{0}, []int32{int32(devices*copies) - 1}).Bandwidth) / 8
	for i := 1; i < layers; i++ {
		g.Edges = append(g.Edges, Edge{i - 1, i})
	}
	g.Tensors, g.Replicas = []int{1}, []int{1}
	if !p.limits.Stages {
		// Devices that share a layer are in one node, whichever that is.
		inNode := int(x.On.Nodes[0].Count)
		for _, n := range x.On.Nodes {
			inNode = min(inNode, int(n.Count))
		}
		g.Tensors, g.Replicas = divisors(inNode), divisors(samples)
	}
	if p.limits.Tensor > 0 {
		g.Tensors = []int{p.limits.Tensor}
	}
	// The program asks for the same layer again and again.
	known := map[[3]int][]Config{}
	g.Configs = func(layer, tensor, replicas int) []Config {
		key := [3]int{layer, tensor, replicas}
		all, made := known[key]
		if !made {
			all = p.configs(layer, tensor, replicas, samples, copies)
			known[key] = all
		}
		return all
	}
	return g
}

// configs are the ways of a layer, or none if it cannot be split so.
func (p *planning) configs(layer, tensor, replicas, samples, copies int) (all []Config) {
	x, layers := p.x, p.x.Model.Profile.Layers()
	rank := parallel.Rank{Tensor: tensor, Replicas: replicas, Devices: make([]int32, tensor*replicas)} // of the first kind
	ways, why := x.Ways(layer, 0, tensor, samples/replicas)
	if why != "" {
		return nil
	}
	for w := range ways {
		if w > 0 && p.limits.Stages {
			break // a run of measured layers keeps everything
		}
		s, _, why := x.Stage(&rank, parallel.Slice{First: layer, End: layer + 1, Ways: slices.Repeat([]int8{int8(w)}, layers)}, samples, copies)
		if why != "" {
			return nil
		}
		c := Config{Time: float64(s.Forward + s.Input + s.Weight), Each: float64(s.ActivationKiB << 10), Fixed: float64((s.ParamKiB + s.StateKiB) << 10)}
		// A ring moves twice what a replica holds of gradients, a server four times.
		c.Params = x.Model.State.Gradients / 2 * float64(s.ParamKiB<<10)
		// Devices that share a layer send a part of its output each, and the port counts one of
		// them; replicas are divided by where they are counted.
		if layer < layers-1 {
			c.Out = []Port{{layer + 1, float64(s.OutputKiB<<10) / float64(tensor)}}
		}
		if layer > 0 {
			before, why := x.Ways(layer-1, 0, tensor, samples/replicas)
			if why != "" {
				return nil
			}
			c.In = []Port{{layer - 1, float64(before[0].OutputKiB<<10) * float64(replicas) / float64(tensor)}}
		}
		all = append(all, c)
	}
	return all
}

// divisors are those of a number, ascending.
func divisors(n int) (all []int) {
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			all = append(all, d)
		}
	}
	return all
}
