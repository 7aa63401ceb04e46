package pipeswitch

import (
	"math/rand/v2"

	"github.com/musterdl/muster/allocate/switching"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// forwardMs is what a forward pass of ResNet152 at batch 8 takes on a V100 (our
// assumption; the layers divide it by their operations).
const forwardMs = 25

// resnet152 are its convolutions and its classifier: bottleneck blocks of three, the
// first of a stage with a projection beside it.
func resnet152() (layers []switching.Layer) {
	var operations []float64
	add := func(parameters, side int) {
		layers = append(layers, switching.Layer{Bytes: 4 * int64(parameters)})
		operations = append(operations, float64(parameters)*float64(side*side))
	}
	add(7*7*3*64, 112)
	in := 64
	for stage, blocks := range []int{3, 8, 36, 3} {
		width, side := 64<<stage, 56>>stage
		for block := range blocks {
			if block == 0 {
				add(in*4*width, side)
			}
			add(in*width, side)
			add(9*width*width, side)
			add(4*width*width, side)
			in = 4 * width
		}
	}
	add(in*1000, 1)
	total := 0.0
	for _, o := range operations {
		total += o
	}
	for i, o := range operations {
		layers[i].Compute = unit.Seconds(forwardMs / 1000. * o / total)
	}
	return layers
}

// Measure asks the pricer what switching to ResNet152 costs, over PCIe of 16 lanes and of
// 8, where the transfer takes longer than the forward pass; and holds the groups that it
// takes against layer by layer, one group, no overlap, and on small models all groupings.
func Measure(seed uint64) map[string]float64 {
	layers := resnet152()
	bytes, compute := int64(0), unit.Duration(0)
	for _, l := range layers {
		bytes, compute = bytes+l.Bytes, compute+l.Compute
	}
	figures := map[string]float64{"missed_optima": missed(Default().switching().Path, seed), "parameters_m": float64(bytes) / 4e6}
	for name, gbytes := range map[string]float64{"": 12, "_8_lanes": 6} {
		c := Default()
		c.BandwidthGBps = gbytes
		path := c.switching().Path
		ms := func(finish unit.Duration) float64 { return 1000 * (finish - compute).Seconds() }
		best := 1000 * price(c, layers).Seconds()
		figures["best_ms"+name] = best
		figures["per_layer_ms"+name] = ms(path.Finish(layers, switching.Single(layers)))
		figures["one_group_ms"+name] = ms(path.Finish(layers, switching.Whole(layers)))
		figures["no_overlap_ms"+name] = 1000 * path.Links[0].Time(bytes).Seconds()
		figures["above_bound_ms"+name] = best - 1000*max(0, path.Links[0].Time(bytes)-compute).Seconds()
	}
	return figures
}

// price is what the strategy says of bringing a job of such layers to an idle device.
func price(c Config, all []switching.Layer) unit.Duration {
	s := plan.NewState(&cluster.Cluster{Name: "none"})
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}}
	s.Profiles = make([]plan.Profile, 1)
	for _, l := range all {
		s.Profiles[0].Layers = append(s.Profiles[0].Layers, plan.ProfileLayer{Forward: l.Compute, ParamKiB: l.Bytes >> 10})
	}
	return New(c).Switch(s.View(), plan.None, s.Admit("newcomer", plan.Job{}))
}

// missed counts the models, of 20 with up to 14 layers, of which some grouping finishes
// before the one that was found.
func missed(path switching.Path, seed uint64) (n float64) {
	dice := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		layers := make([]switching.Layer, 2+dice.IntN(13))
		for i := range layers {
			layers[i] = switching.Layer{Bytes: dice.Int64N(4 << 20), Compute: unit.Duration(dice.IntN(400))}
		}
		found := path.Group(layers).Finish
		for cuts := range 1 << (len(layers) - 1) {
			var ends []int
			for i := range len(layers) - 1 {
				if cuts&(1<<i) != 0 {
					ends = append(ends, i+1)
				}
			}
			if path.Finish(layers, append(ends, len(layers))) < found {
				n++
				break
			}
		}
	}
	return n
}
