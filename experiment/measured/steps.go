package measured

import (
	_ "embed" // for the claim

	"fmt"
	"math"
	"strconv"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Steps is what is published of the steps of large models, as data, for muster reproduce.
//
//go:embed steps.yaml
var Steps []byte

// step is a published one: a plan on nodes of eight devices, and how long it took.
type step struct {
	name           string
	device         string
	shape          shape.Shape
	tensor, ranks  int
	chunks, nodes  int // stages of a rank
	samples, batch int
	way            string // in which all blocks run
	whole          bool   // without sequence parallel
	seconds        float64
	tflops         float64 // of a device, in the place of seconds
	again          bool    // these count what is computed again
}

// megatron is a model of Narayanan et al. (SC 2021), table 1, in the configuration of
// Megatron-LM's examples/sc21/run_table_1.sh.
func megatron(name string, plan [8]int, tflops float64) step {
	blocks, hidden, heads, tensor, ranks, chunks, nodes, samples := plan[0], plan[1], plan[2], plan[3], plan[4], plan[5], plan[6], plan[7]
	s := shape.Shape{Name: name, Blocks: blocks, Hidden: hidden, FFN: 4 * hidden, Heads: heads, Sequence: 2048, Vocabulary: 51200,
		Positions: 2048, Tied: true, Bias: true, Dropout: true}
	return step{name: name, device: "A100-80GB", shape: s, tensor: tensor, ranks: ranks, chunks: chunks, nodes: nodes, samples: samples,
		way: "full", whole: true, tflops: tflops, again: true}
}

// published are the steps. Their seconds and rates are recalled from the papers.
func published() []step {
	find := func(name string) shape.Shape {
		s, _ := shape.Find(name)
		return s
	}
	korthikanti := func(name string, ranks, chunks, nodes, batch int, seconds, full float64) []step {
		s := step{name: name + "-selective", device: "A100-80GB", shape: find(name), tensor: 8, ranks: ranks, chunks: chunks, nodes: nodes, samples: 1,
			batch: batch, way: "selective", seconds: seconds}
		if nodes == 1 {
			s.samples = 4
		}
		f := s
		f.name, f.way, f.whole, f.seconds = name+"-full", "full", true, full
		return []step{s, f}
	}
	list := []step{
		megatron("1.7B", [8]int{24, 2304, 24, 1, 1, 1, 4, 16}, 137), megatron("3.6B", [8]int{30, 3072, 32, 2, 1, 1, 8, 16}, 138),
		megatron("7.5B", [8]int{36, 4096, 32, 4, 1, 1, 16, 16}, 142), megatron("18B", [8]int{40, 6144, 48, 8, 1, 1, 32, 8}, 135),
		megatron("39B", [8]int{48, 8192, 64, 8, 2, 1, 64, 4}, 138), megatron("76B", [8]int{60, 10240, 80, 8, 4, 3, 128, 2}, 140),
		megatron("145B", [8]int{80, 12288, 96, 8, 8, 2, 192, 2}, 148), megatron("310B", [8]int{96, 16384, 128, 8, 16, 2, 240, 1}, 155),
		megatron("530B", [8]int{105, 20480, 128, 8, 35, 3, 315, 1}, 163), megatron("1T", [8]int{128, 25600, 160, 8, 64, 1, 384, 1}, 163),
	}
	for i, batch := range []int{512, 512, 512, 1024, 1536, 1792, 2304, 2160, 2520, 3072} {
		list[i].batch = batch
	}
	list = append(list, korthikanti("gpt-22b", 1, 1, 1, 4, 1.10, 1.42)...)
	list = append(list, korthikanti("gpt-3", 8, 3, 8, 64, 13.75, 18.13)...)
	list = append(list, korthikanti("mt-nlg", 35, 3, 35, 280, 37.83, 49.05)...)
	list = append(list, korthikanti("1t", 64, 1, 64, 512, 71.49, 94.42)...)
	for i, seconds := range []float64{60.1, 50.2, 44.4} { // Smith et al. 2022
		nodes := []int{280, 350, 420}[i]
		list = append(list, step{name: fmt.Sprintf("mt-nlg-%d-nodes", nodes), device: "A100-80GB", shape: find("mt-nlg"), tensor: 8, ranks: 35, chunks: 1,
			nodes: nodes, samples: 1, batch: 1920, way: "full", whole: true, seconds: seconds})
	}
	llama := step{name: "llama-3-405b-8192", device: "H100", shape: find("llama-3-405b"), tensor: 8, ranks: 16, chunks: 8, nodes: 1024,
		samples: 1, batch: 2048, tflops: 430} // Dubey et al. 2024
	more := llama
	more.name, more.nodes, more.tflops = "llama-3-405b-16384", 2048, 400
	return append(list, llama, more)
}

// nodeOut is what a node of eight devices has to the others: 200 Gbit/s of each device, or 400
// of each H100.
var nodeOut = map[string]unit.Mbps{"A100-80GB": 1_600_000, "H100": 3_200_000}

// predict tells how long the step takes, and how long it took.
func (s *step) predict(order func(chunks int) pipeline.Ordering) (predicted, took float64, why pipeline.Why) {
	kind, why := shape.Device(s.device, shape.Half)
	if why != "" {
		return 0, 0, why
	}
	profile, whys := shape.New(s.shape, shape.Half)
	if len(whys) > 0 {
		return 0, 0, pipeline.Why(whys[0].Error())
	}
	profile.Whole = s.whole
	kind.Memory = 0 // it ran; how it spread its weights besides is not always told
	x := parallel.NewSimulator(profile.Model(s.name, s.batch, parallel.MixedAdam), parallel.Even(kind, s.nodes, 8, nodeOut[s.device]))
	// Llama 3 spreads the state of its optimiser over the copies; the others did not yet.
	x.Model.State.Sharded = s.device == "H100"
	copies := s.nodes * 8 / (s.tensor * s.ranks)
	plan := parallel.Shape{Sequence: parallel.Sequence{Name: s.name, Order: order(s.chunks)}, Samples: s.samples, Microbatches: s.batch / copies / s.samples,
		Tensor: s.tensor, Ranks: s.ranks, Copies: copies, Cuts: s.cuts(profile.Layers()), Ways: make([]int8, profile.Layers())}
	useful, again := 0.0, 0.0
	for l := range plan.Ways {
		ways, why := profile.Ways(l, &kind, s.tensor, s.samples)
		if why != "" {
			return 0, 0, why
		}
		useful += ways[0].GFlop // of a device, in one microbatch
		for i, w := range ways {
			if w.Way == s.way {
				plan.Ways[l] = int8(i)
			}
		}
		if len(ways) > 1 && s.again {
			again += ways[0].GFlop / 3 // the pass forward once more
		}
	}
	spread := plan.Plan()
	r, why := x.Simulate(&spread)
	if took = s.seconds; took == 0 {
		// A device works on all microbatches of its copy, and on its part of the layers.
		took = (useful + again) * float64(plan.Microbatches) / float64(s.ranks) / (1e3 * s.tflops)
	}
	return r.Step.Seconds(), took, why
}

// cuts spreads the blocks evenly; the embedding and the head stand with the first and the last,
// or alone where there is a stage for each layer.
func (s *step) cuts(layers int) (cuts []int32) {
	stages := s.ranks * s.chunks
	for k := 1; k < stages; k++ { // the first layer is the embedding
		if stages == layers {
			cuts = append(cuts, int32(k))
		} else {
			cuts = append(cuts, int32(1+k*s.shape.Blocks/stages))
		}
	}
	return cuts
}

// MeasureSteps predicts the published steps under 1F1B or, with several chunks on a rank, its
// interleaved form, and tells by how many percent each is off, and how many are by no more than 20.
func MeasureSteps(order func(chunks int) pipeline.Ordering) func(figures.Open, uint64) (map[string]float64, error) {
	return func(open figures.Open, _ uint64) (map[string]float64, error) {
		got := map[string]float64{}
		for _, s := range published() {
			predicted, took, why := s.predict(order)
			if why != "" {
				return nil, fmt.Errorf("%s: %s", s.name, why)
			}
			off := 100 * (predicted/took - 1)
			got[s.name] = off
			got["steps"]++
			got["mean"] += (math.Abs(off) - got["mean"]) / got["steps"]
			got["bias"] += (off - got["bias"]) / got["steps"]
			if math.Abs(off) <= 20 {
				got["within"]++
			}
		}
		return got, mlperf(open, order, got)
	}
}

// bert is what MLPerf trains, on nodes of eight devices, each with its part of the batch as one
// microbatch.
func bert(device string, devices, batch int) step {
	s := shape.Shape{Name: "bert", Blocks: 24, Hidden: 1024, FFN: 4096, Heads: 16, Sequence: 512, Vocabulary: 30528, Positions: 512, Tied: true, Bias: true, Dropout: true}
	return step{name: "bert", device: device, shape: s, tensor: 1, ranks: 1, chunks: 1, nodes: devices / 8, samples: batch / devices, batch: batch, seconds: 1}
}

// mlperf compares pairs of runs with the same batch, and so about as many steps: how much longer
// one takes than the other. Of a single run it is not told how many steps it took.
func mlperf(open figures.Open, order func(chunks int) pipeline.Ordering, got map[string]float64) error {
	minutes := map[string]float64{} // from the start to the accuracy asked for, by system
	err := figures.FromTable(open, "mlperf/training_v2.1_time_to_train.csv", []string{"system", "benchmark", "trimmed_mean_minutes"}, func(f []string) error {
		n, err := strconv.ParseFloat(f[2], 64)
		if f[1] == "bert" {
			minutes[f[0]] = n
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, pair := range []struct {
		name       string
		fast, slow string
		a, b       step
	}{
		{"mlperf-h100", "dgxh100_n4_preview", "dgxa100_n8_ngc22.09_pytorch", bert("H100", 32, 3072), bert("A100-80GB", 64, 3072)},
		{"mlperf-a100", "dgxa100_n512_ngc22.04_pytorch", "samsung_supercomputer21_dgxa100_n128_pytorch", bert("A100-80GB", 4096, 16384), bert("A100-80GB", 1024, 16384)},
	} {
		a, _, why := pair.a.predict(order)
		b, _, too := pair.b.predict(order)
		if why != "" || too != "" {
			return fmt.Errorf("%s: %s%s", pair.name, why, too)
		}
		got[pair.name] = 100 * (a/b/(minutes[pair.fast]/minutes[pair.slow]) - 1)
	}
	return nil
}
