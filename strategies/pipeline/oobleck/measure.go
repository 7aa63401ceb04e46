package oobleck

import (
	_ "embed" // for Claim
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
)

// Claim is what is published of the templates and of recovery, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// sequences is how many each seed plays.
const sequences = 2000

// Measure plays failures, and counts which numbers of nodes templates make up.
func Measure(order pipeline.Ordering) func(seed uint64) map[string]float64 {
	return func(seed uint64) map[string]float64 {
		b := Failures(order, seed, sequences)
		return map[string]float64{"no_owner": float64(b.NoOwner), "idle": float64(b.Idle), "batch": float64(b.Batch), "copied": float64(b.Copied), "refused": float64(b.Refused),
			"recoveries": float64(b.Recoveries) / float64(b.Sequences), "covered_pct": 100 * covered(0), "fewer_pct": 100 * covered(1)}
	}
}

// covered needs no model: which sums can be made depends on the sizes alone. It is the part of the numbers of nodes, from the least of a family to 60, that its templates
// make up, with so many of the largest left out.
func covered(fewer int) float64 {
	made, all := 0., 0.
	// Every template takes equally long here, so that any sum will do.
	for least := 2; least <= 12; least++ {
		f := &Family{Least: least, batches: 1000}
		for range least - fewer {
			f.Templates = append(f.Templates, &Template{More: 1})
		}
		for nodes := least; nodes <= 60; nodes++ {
			all++
			if len(f.mixes(nodes, 1, 1)) > 0 {
				made++
			}
		}
	}
	return made / all
}

// Broken counts what does not hold after failures.
type Broken struct {
	Sequences, Recoveries int
	// NoOwner is layers on no device, Idle nodes that are left and not used, Batch steps of
	// another batch, Copied copies that are not what the new owners lacked.
	NoOwner, Idle, Batch, Copied int
	// Refused is sequences in which it gave up though as many nodes were left as the model needs,
	// and each layer on one of them.
	Refused int
}

// Failures draws models and devices that differ in everything that a template depends on: layers,
// nodes, devices in a node, and memory, which says how many nodes a model needs. It loses node
// after node of drawn plans, one or several at once, until the model fits on
// what is left no longer.
func Failures(order pipeline.Ordering, seed uint64, sequences int) (b Broken) {
	dice := rand.New(rand.NewPCG(seed, 13))
	for b.Sequences < sequences {
		layers, nodes, inNode := 6+dice.IntN(8), 4+dice.IntN(14), 1+dice.IntN(2)
		c := make(paralleltest.Chain, layers)
		for i := range c {
			c[i] = parallel.Layer{Forward: unit.Duration(100 + dice.IntN(900)), Input: 500, Weight: 500, ParamKiB: 1024, ActivationKiB: 64, OutputKiB: 8, GFlop: 1}
		}
		kind := parallel.Device{Name: "unit", TFlops: 1, Memory: unit.MiB(4*layers/inNode/(1+dice.IntN(5))) + 8, Inside: parallel.Link{Bandwidth: 100_000}}
		x := parallel.NewSimulator(&parallel.Model{Name: "drawn", Profile: c, Batch: 32, State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}},
			parallel.Even(kind, nodes, inNode, 10_000))
		f, why := NewFamily(x, Setting{Sequence: parallel.Sequence{Name: "1f1b", Order: order}, Samples: 1, Nodes: nodes})
		if why != "" {
			continue
		}
		// Templates cost more to make than a sequence to play.
		for range 20 { // as many sequences of each drawn model
			b.sequence(x, f, dice)
			if b.Sequences++; b.Sequences == sequences {
				break
			}
		}
	}
	return b
}

// sequence loses nodes of one plan until none can be lost. Two at once may hold all copies of a
// layer, and end it.
func (b *Broken) sequence(x *parallel.Simulator, f *Family, dice *rand.Rand) {
	mixes := f.mixes(f.Nodes, 1, mixes)
	if len(mixes) == 0 {
		return
	}
	p, why := f.plan(consecutive(mixes[dice.IntN(len(mixes))]))
	if why != "" {
		return
	}
	// Who is left is counted here and not read from a plan, so that a node that a plan forgets is seen.
	left := consecutive([]int{f.Nodes})[0]
	for len(left) > f.Least {
		var lost []int32
		for range 1 + dice.IntN(2) {
			at := dice.IntN(len(left))
			for d := range int32(f.inNode) {
				lost = append(lost, left[at]*int32(f.inNode)+d)
			}
			left = slices.Delete(left, at, at+1)
		}
		r, why := f.Recover(x, &p, lost)
		if why != "" {
			if len(left) >= f.Least && owned(&p, lost, f.layers) {
				b.Refused++
			}
			return
		}
		b.Recoveries++
		b.check(&p, &r, left, f)
		p = r.Plan
	}
}

// check counts what a recovery broke, from the plans alone: it knows what devices hold by
// another way than the recovery, which is what makes it a check.
func (b *Broken) check(before *parallel.Plan, r *parallel.Recovery, left []int32, f *Family) {
	var used []int32
	for _, d := range r.Plan.Devices() {
		used = append(used, d/int32(f.inNode))
	}
	// A node works if any of its devices does: the devices of a template are those of whole nodes.
	if slices.Sort(left); !slices.Equal(slices.Compact(used), left) {
		b.Idle++
	}
	if r.Plan.Batch() != before.Batch() {
		b.Batch++
	}
	// A layer is 1 MiB of weights and as much of each moment: 3 MiB, of which each device of a
	// stage has its part.
	copied, lacked := int64(0), int64(0)
	for _, c := range r.Copies {
		copied += c.KiB
	}
	for layer := range int32(f.layers) {
		had, has := holders(before, layer), holders(&r.Plan, layer)
		if len(has) == 0 {
			b.NoOwner++
		}
		for d, need := range has {
			lacked += int64(3*1024/need.of) * int64(100-need.in(had[d])) / 100
		}
	}
	if copied != lacked {
		b.Copied++
	}
}

// part is one of so many of a layer.
type part struct{ at, of int }

// in is how much of a part another covers, in percent.
func (p part) in(other part) int {
	if other.of == 0 {
		return 0
	}
	first, end := max(p.at*other.of, other.at*p.of), min((p.at+1)*other.of, (other.at+1)*p.of)
	return 100 * max(0, end-first) / other.of
}

// holders are the devices that hold a layer, and which part of it.
func holders(p *parallel.Plan, layer int32) map[int32]part {
	on := map[int32]part{}
	for _, one := range p.Pipelines {
		stage, starts := slices.BinarySearch(one.Cuts, layer)
		if starts {
			stage++
		}
		for i, d := range one.Ranks[stage].Devices {
			on[d] = part{i, len(one.Ranks[stage].Devices)}
		}
	}
	return on
}

// owned reports whether every layer is on a device that is left. Where it is not, to give up is
// right: only a checkpoint has the layer.
func owned(p *parallel.Plan, lost []int32, layers int) bool {
	for layer := range int32(layers) {
		on := holders(p, layer)
		for _, d := range lost {
			delete(on, d)
		}
		if len(on) == 0 {
			return false
		}
	}
	return true
}
