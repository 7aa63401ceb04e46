package stand

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

func init() {
	register("stages", "a job that trains in a pipeline over all devices (ranks, microbatches, layers); a layer takes 1 ms forward and 2 ms backward, the last one so many times as long (last); the first device so fast against the others (slow); to hand on what a stage puts out takes so many ms (sends), which needs each device on a node of its own", stages)
}

// stages has one job, which would take an hour if no device ever waited: its JCT tells how long
// an iteration is.
func stages(_ Data, o *Options, _ uint64) (*Stand, error) {
	ranks, layers, last := o.Int("ranks", 4), o.Int("layers", 16), o.Int("last", 1)
	j := workload.Job{Resources: workload.Resources{Gang: int32(ranks), Devices: 1, Share: unit.Whole, Memory: 1 << 10}}
	j.Pipeline = workload.Pipeline{Stages: int32(ranks), Microbatches: int32(o.Int("microbatches", 8)),
		Layers: slices.Repeat([]workload.Layer{{Forward: unit.Millisecond, Backward: 2 * unit.Millisecond}}, layers)}
	end := &j.Pipeline.Layers[layers-1]
	end.Forward, end.Backward = unit.Duration(last)*end.Forward, unit.Duration(last)*end.Backward
	c := &cluster.Cluster{Name: "pipeline"}
	rack, gpu := c.AddRack(cluster.Rack{Name: "rack"}), c.AddModel(cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1})
	if slow := o.Float("slow", 1); slow != 1 {
		c.AddNode(cluster.Node{Name: "slow", Rack: rack, Model: c.AddModel(cluster.Model{Name: "slow", Memory: 16 << 10, Speed: slow})}, 1)
	}
	if sends := o.Float("sends", 0); sends > 0 {
		const uplink = 8192 // so many MB in a ms
		for i := range j.Pipeline.Layers {
			j.Pipeline.Layers[i].OutputKiB = int64(sends * uplink / 8 * 1e6 / 1e3 / 1024)
		}
		for len(c.Devices) < ranks {
			c.AddNode(cluster.Node{Name: fmt.Sprint("node", len(c.Devices)), Rack: rack, Model: gpu, Uplink: uplink}, 1)
		}
	} else {
		c.AddNode(cluster.Node{Name: "node", Rack: rack, Model: gpu}, ranks-len(c.Devices))
	}
	return &Stand{Cluster: c,
		Jobs: list([]item{{j, workload.Truth{Duration: unit.Hour}}})}, nil
}
