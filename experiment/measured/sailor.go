// Package measured holds the steps that the simulator predicts against those that others
// measured and published.
package measured

import (
	_ "embed" // for the claims

	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Sailor is what the authors of Sailor measured, as data, for muster reproduce.
//
//go:embed sailor.yaml
var Sailor []byte

// sailorModels are those of Sailor's plans. GPT-Neo has the 20 heads of its authors: with the 32
// that Sailor's configuration gives, its profile on V100 would be above the device's peak.
// What comes out of its last block is not multiplied with the vocabulary (llm_info.json). By their authors' configurations
// neither drops scores of attention, and what OPT drops besides is little.
var sailorModels = map[string]shape.Shape{
	"OPT-350": {Name: "OPT-350", Blocks: 24, Hidden: 1024, FFN: 4096, Heads: 16, Sequence: 2048, Vocabulary: 50272,
		Positions: 2048, Bias: true},
	"GPT-Neo-2.7": {Name: "GPT-Neo-2.7", Blocks: 32, Hidden: 2560, FFN: 10240, Heads: 20, Sequence: 2048, Vocabulary: 50257,
		Positions: 2048, Bias: true, Headless: true},
}

// The machines are nodes of four GH200, each device with a network interface of its own. The
// launch of kernels and what a program keeps of a device are fitted on one plan and the device's constant on another; all others are
// predicted.
const (
	sailorNode = 4
	sailorNIC  = 200_000 // Mbit/s of a device
)

var (
	sailorFitted  = []string{"OPT-350_N1_D1_M4_G32", "OPT-350_N16_D16"}
	sailorFilled  = "OPT-350_N1_D1_M4_G1" // what a program keeps of a device is fitted on it
	sailorSuspect = "GPT-Neo-2.7_N4_D4"   // 26 layers of 34, and gradients that take as long as the step
)

// sailorPlan is a plan as Sailor writes it.
type sailorPlan struct {
	Model  string     `json:"model"`
	Micro  int        `json:"mbs"`
	Batch  int        `json:"gbs"`
	Copies []int      `json:"dp"`
	Layers [][]int    `json:"layers_per_stage"`
	Groups [][][2]any `json:"tmp_per_stage"` // of a stage, each copy's devices and how many share its layers
}

// readSailor reads a plan. A mistake is named with its file and field.
func readSailor(open figures.Open, file string) (*sailorPlan, error) {
	p := &sailorPlan{}
	if err := figures.FromJSON(open, file, p); err != nil {
		return nil, err
	}
	wrong := func(field string, found any, expected string) error {
		return fmt.Errorf("%s: %s is %v: expected %s", file, field, found, expected)
	}
	s, known := sailorModels[p.Model]
	if !known {
		return nil, wrong("model", p.Model, "OPT-350 or GPT-Neo-2.7")
	}
	next := 0
	for _, stage := range p.Layers { // one plan has a misprint between two ends: only those are read
		if n := len(stage); n == 0 || stage[0] != next || stage[n-1] != next+n-1 {
			return nil, wrong("layers_per_stage", stage, fmt.Sprintf("layers from %d on", next))
		}
		next += len(stage)
	}
	if next != s.Blocks+2 {
		return nil, wrong("layers_per_stage", next, fmt.Sprintf("the %d layers of %s", s.Blocks+2, p.Model))
	}
	if len(p.Copies) != len(p.Layers) || len(p.Groups) != len(p.Layers) || slices.Min(p.Copies) != slices.Max(p.Copies) {
		return nil, wrong("dp", p.Copies, fmt.Sprintf("as many copies of each of %d stages", len(p.Layers)))
	}
	if p.Micro < 1 || p.Copies[0] < 1 || p.Batch < 1 || p.Batch%(p.Micro*p.Copies[0]) != 0 {
		return nil, wrong("gbs", p.Batch, fmt.Sprintf("a multiple of mbs %d times dp %d", p.Micro, p.Copies[0]))
	}
	for _, stage := range p.Groups {
		for _, group := range stage {
			if group[1] != float64(sailorNode) {
				return nil, wrong("tmp_per_stage", group[1], fmt.Sprintf("the %d devices of a node", sailorNode))
			}
		}
	}
	return p, nil
}

// model is what the plan trains. It runs as DeepSpeed has it: what is not split a device does for all tokens, and each
// sends whole activations.
func (p *sailorPlan) model() (*parallel.Model, pipeline.Why) {
	profile, whys := shape.New(sailorModels[p.Model], shape.TF32)
	if len(whys) > 0 {
		return nil, pipeline.Why(whys[0].Error())
	}
	profile.Whole, profile.Repeats = true, true
	return profile.Model(p.Model, p.Batch, parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}), ""
}

// nodes are the machines of the plan.
func (p *sailorPlan) nodes() (*parallel.Devices, pipeline.Why) {
	kind, why := shape.Device("GH200-96GB", shape.TF32)
	return parallel.Even(kind, len(p.Layers)*p.Copies[0], sailorNode, sailorNode*sailorNIC), why
}

// spread is the plan for the simulator.
func (p *sailorPlan) spread(order pipeline.Ordering) parallel.Shape {
	s := parallel.Shape{Sequence: parallel.Sequence{Name: "1f1b", Order: order}, Samples: p.Micro, Microbatches: p.Batch / p.Micro / p.Copies[0],
		Tensor: sailorNode, Ranks: len(p.Layers), Copies: p.Copies[0]}
	for _, layers := range p.Layers[1:] {
		s.Cuts = append(s.Cuts, int32(layers[0]))
	}
	return s
}

// predict tells how long a step of the plan takes, and what the fullest device holds.
func (p *sailorPlan) predict(order pipeline.Ordering) (step unit.Duration, peakKiB int64, why pipeline.Why) {
	model, why := p.model()
	on, not := p.nodes()
	if why = cmp.Or(why, not); why != "" {
		return 0, 0, why
	}
	shape := p.spread(order)
	plan := shape.Plan()
	r, why := parallel.NewSimulator(model, on).Simulate(&plan)
	return r.Step, r.PeakKiB() + int64(on.Kinds[0].Reserve)<<10, why
}

// MeasureSailor predicts all plans under 1F1B and tells how far it is off, in percent: in the mean over the
// plans, over those on which nothing was fitted, and by plan; step and memory.
func MeasureSailor(order pipeline.Ordering) func(figures.Open, uint64) (map[string]float64, error) {
	return func(open figures.Open, _ uint64) (map[string]float64, error) {
		got := map[string]float64{}
		mean := func(name string, off float64) { // of all that were noted under a name so far
			got[name+"_n"]++
			got[name] += (math.Abs(off) - got[name]) / got[name+"_n"]
			got[name+"_bias"] += (off - got[name+"_bias"]) / got[name+"_n"]
		}
		err := sailorPlans(open, func(name string, plan *sailorPlan, seconds, bytes float64) error {
			step, peak, why := plan.predict(order)
			if why != "" {
				return fmt.Errorf("%s: %s", name, why)
			}
			off, held := 100*(step.Seconds()/seconds-1), 100*(1024*float64(peak)/bytes-1)
			got[name], got[name+"_memory"] = off, held
			mean("all", off)
			mean(strings.ToLower(plan.Model), off)
			if name != sailorFilled {
				mean("memory", held)
			}
			if !slices.Contains(sailorFitted, name) {
				mean("others", off)
				got["worst"] = max(got["worst"], math.Abs(off))
			}
			return nil
		})
		return got, err
	}
}

// sailorPlans goes through the plans with what was measured of each.
func sailorPlans(open figures.Open, each func(name string, plan *sailorPlan, seconds, bytes float64) error) error {
	return figures.FromTable(open, "sailor-measured/measured.csv", []string{"plan", "iteration_s", "max_mem_bytes"}, func(fields []string) error {
		if fields[0] == sailorSuspect {
			return nil
		}
		seconds, err := strconv.ParseFloat(fields[1], 64)
		bytes, too := strconv.ParseFloat(fields[2], 64)
		if err != nil || too != nil || !(seconds > 0 && bytes > 0) {
			return fmt.Errorf("iteration_s %q and max_mem_bytes %q: expected more than 0", fields[1], fields[2])
		}
		plan, err := readSailor(open, "sailor-measured/plans/"+fields[0]+".json")
		if err != nil {
			return err
		}
		return each(fields[0], plan, seconds, bytes)
	})
}
