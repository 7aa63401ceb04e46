package stand

import (
	"fmt"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("switching", "training of ResNet152 on a V100 that makes way, once a minute, for one batch of inference by another copy of it, over PCIe of so many lanes (lanes); layers' times are measured with an error (error)", switches)
}

// batchMs is what a forward pass of ResNet152 at batch 8 takes on a V100 (our assumption;
// the layers divide it by their operations).
const batchMs = 25

// resnet152 are its convolutions and its classifier: bottleneck blocks of three, the
// first of a stage with a projection beside it.
func resnet152() (layers []workload.Layer) {
	var operations []float64
	add := func(parameters, side int) {
		layers = append(layers, workload.Layer{ParamKiB: int64(4*parameters) >> 10})
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
		layers[i].Forward = unit.Seconds(batchMs / 1000. * o / total)
	}
	return layers
}

// switches charges what the paper names: a process that starts takes 6.5 s, memory goes
// over PCIe, 12 GB/s with 16 lanes. The fixed costs of a transfer and a hand-over are ours.
func switches(_ Data, o *Options, _ uint64) (*Stand, error) {
	const times = 20
	lanes := o.Int("lanes", 16)
	if lanes != 16 && lanes != 8 {
		return nil, fmt.Errorf("lanes is %d: expected 16 or 8", lanes)
	}
	prices := simulated.DefaultPrices()
	prices = simulated.Prices{ProbeError: o.Float("error", 0), Start: prices.Start, StoreGBps: prices.StoreGBps, HostGBps: prices.HostGBps * float64(lanes) / 16,
		Transfer: prices.Transfer, HandOver: prices.HandOver, Leave: prices.Leave}
	layers, compute, bytes := resnet152(), unit.Duration(0), int64(0)
	for _, l := range layers {
		compute, bytes = compute+l.Forward, bytes+l.ParamKiB<<10
	}
	net := workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole, Memory: unit.MiB(bytes >> 20)}, Checkpoint: workload.Checkpoint{OnRequest: true}}
	net.Pipeline.Layers = layers
	all := []item{{net, workload.Truth{Duration: times * unit.Minute}}}
	for i := range times {
		j := net
		j.Priority, j.Submit = 1, unit.Time(0).Add(unit.Duration(i+1)*unit.Minute)
		all = append(all, item{j, workload.Truth{Duration: compute}})
	}
	sent := map[plan.JobID]unit.Time{} // when it was told to start
	hidden := max(0, unit.Seconds(float64(bytes)/(prices.HostGBps*1e9))-compute)
	return &Stand{Cluster: cluster.Uniform("one", 1, 1, cluster.Model{Name: "v100", Memory: 16 << 10, Speed: 1}, 1), Jobs: list(all), Prices: prices,
		Step: func(at unit.Time, ready []plan.Change, _ plan.View) {
			for i := range ready {
				if c := &ready[i]; c.Verb == plan.Start && c.Attempt == 1 {
					sent[c.Job] = at
				}
			}
		},
		Figures: func(o *Finished) map[string]float64 {
			out := map[string]float64{"parameters_m": float64(bytes) / 4e6}
			for i := range o.Jobs {
				switch j := &o.Jobs[i]; {
				case i == 0:
					out["training_inflation"] = j.JCT().Seconds() / j.Truth.Duration.Seconds()
				case j.Outcome == report.Finished:
					start := 1000 * j.FirstStart.Sub(sent[plan.JobID(i)]).Seconds()
					out["startup_ms"] += start / times
					out["above_bound_ms"] += (start - 1000*hidden.Seconds()) / times
					out["switch_ms"] += 1000 * (j.JCT() - compute).Seconds() / times
				}
			}
			return out
		}}, nil
}
