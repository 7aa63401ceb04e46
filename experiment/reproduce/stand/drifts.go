package stand

import (
	"math/rand/v2"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
)

func init() {
	register("drifts", "two like jobs of drawn uneven layers, twelve for each of so many stages (ranks), each device a node with 100 Gb/s; after a tenth of an hour of work, or another part (from), a stretch of layers as long as a stage takes so many times as long (times) in the first, and ever after", drifts)
}

// drifts has one job that drifts and one that does not: what the drift costs is by how much longer
// the first one takes.
func drifts(_ Data, o *Options, seed uint64) (*Stand, error) {
	ranks, times, from := o.Int("ranks", 16), o.Float("times", 1.3), o.Float("from", .1)
	const each = 12
	dice := rand.New(rand.NewPCG(seed, 8))
	j := workload.Job{Resources: workload.Resources{Gang: int32(ranks), Devices: 1, Share: unit.Whole}, Estimate: unit.Hour}
	j.Pipeline = workload.Pipeline{Stages: int32(ranks), Microbatches: int32(4 * ranks)}
	for _, l := range paralleltest.Uneven(dice, each*ranks) { // what they hand on is drawn without regard to passes: a fiftieth of it takes some hundredth of them
		j.Pipeline.Layers = append(j.Pipeline.Layers, workload.Layer{Forward: l.Forward, Backward: l.Input + l.Weight, ParamKiB: l.ParamKiB, OutputKiB: l.OutputKiB / 50, ActivationKiB: l.ActivationKiB})
	}
	first := int32(each * dice.IntN(ranks))
	truth := workload.Truth{Duration: unit.Hour, Drifts: []workload.Drift{{From: from, First: first, End: first + each, Times: times}}}
	c := cluster.Uniform("drifts", 2*ranks, 1, cluster.Model{Name: "gpu", Memory: 80 << 10, Speed: 1}, 16)
	for n := range c.Nodes {
		c.Nodes[n].Uplink = 100_000
	}
	return &Stand{Cluster: c, Jobs: list([]item{{j, truth}, {j, workload.Truth{Duration: unit.Hour}}}),
		Figures: func(f *Finished) map[string]float64 {
			lost := f.Jobs[0].JCT() - f.Jobs[1].JCT()
			return map[string]float64{"lost_s": lost.Seconds(), "lost_part": lost.Seconds() / f.Jobs[1].JCT().Seconds()}
		}}, nil
}
