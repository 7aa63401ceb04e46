package parallel

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Measured is a profile of layers that were timed on one kind of device, one microbatch of one
// sample at a time. Nothing is known of how they would be split.
type Measured []workload.Layer

var _ Profile = Measured(nil)

// Of is the model of a job that brings its measured layers: a microbatch is one sample.
func Of(job workload.Pipeline) *Model {
	return &Model{Profile: Measured(job.Layers), Batch: int(job.Microbatches), State: State{Weights: 1, Gradients: 1, Optimizer: 2}}
}

// Ranks are so many devices, each for itself, of speeds relative to that on which layers were
// measured; none means 1. Links are endless.
func Ranks(n int, speeds []float64) *Devices {
	if len(speeds) == 0 {
		return Even(Device{Name: "device", TFlops: 1}, n, 1, 0)
	}
	d := &Devices{}
	for _, speed := range speeds {
		kind := slices.IndexFunc(d.Kinds, func(k Device) bool { return k.TFlops == speed })
		if kind < 0 {
			kind = len(d.Kinds)
			d.Kinds = append(d.Kinds, Device{Name: fmt.Sprintf("device of speed %g", speed), TFlops: speed})
		}
		d.Nodes = append(d.Nodes, Node{Kind: int32(kind), Count: 1})
	}
	return d.Index()
}

// Placed are the devices of ranks, one each, on nodes of a cluster, with the links of these and of
// their racks.
func Placed(c *cluster.Cluster, nodes []int32, speeds []float64) *Devices {
	ranks := Ranks(len(nodes), speeds)
	d := &Devices{Kinds: ranks.Kinds}
	var racks []int32
	for i, n := range nodes {
		node := Node{Kind: ranks.Nodes[i].Kind, Out: c.Nodes[n].Uplink}
		if len(c.Racks) > 1 {
			rack := slices.Index(racks, c.Nodes[n].Rack)
			if rack < 0 {
				rack = len(racks)
				racks, d.Racks = append(racks, c.Nodes[n].Rack), append(d.Racks, c.Racks[c.Nodes[n].Rack].Uplink)
			}
			node.Rack = int32(rack)
		}
		if i == 0 || n != nodes[i-1] || node.Kind != ranks.Nodes[i-1].Kind {
			d.Nodes = append(d.Nodes, node)
		}
		d.Nodes[len(d.Nodes)-1].Count++
	}
	return d.Index()
}

// Links are those from each device to each other; none where all are endless.
func (d *Devices) Links() [][]Link {
	all, limited := make([][]Link, d.Len()), false
	for a := range all {
		all[a] = make([]Link, d.Len())
		for b := range all {
			if a != b {
				all[a][b] = d.Between([]int32{int32(a)}, []int32{int32(b)})
				limited = limited || all[a][b] != Link{}
			}
		}
	}
	if !limited {
		return nil
	}
	return all
}

// Layers is how many were measured.
func (m Measured) Layers() int { return len(m) }

// Ways are to keep what was measured, and to keep the input alone and compute the rest again.
// A device's TFlops are how fast it is against the one on which the layers were measured.
func (m Measured) Ways(layer int, on *Device, tensor, samples int) ([]Layer, Why) {
	if tensor != 1 {
		return nil, whyf("layer %d over %d devices: measured layers cannot be split; expected 1", layer, tensor)
	}
	l, input, n := m[layer], int64(0), int64(samples)
	if layer > 0 {
		input = m[layer-1].OutputKiB
	}
	takes := func(d unit.Duration) unit.Duration {
		return unit.Duration(float64(d*unit.Duration(samples))/on.TFlops + .5)
	}
	whole := Layer{Forward: takes(l.Forward), Input: takes(l.Backward - l.Backward/2), Weight: takes(l.Backward / 2),
		ParamKiB: l.ParamKiB, ActivationKiB: n * l.ActivationKiB, OutputKiB: n * l.OutputKiB}
	lean := whole
	lean.Way, lean.Again, lean.ActivationKiB = "full", whole.Forward, n*min(input, l.ActivationKiB)
	return []Layer{whole, lean}, ""
}
