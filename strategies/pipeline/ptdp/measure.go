package ptdp

import (
	"cmp"
	_ "embed" // for Claim
	"slices"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Claim is what Megatron-Turing NLG was trained with, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// published is how long a step of Megatron-Turing NLG took on so many nodes of eight A100.
var published = []struct {
	name    string
	nodes   int
	seconds float64
}{{"280", 280, 60.1}, {"350", 350, 50.2}, {"420", 420, 44.4}}

// blocks of the model are cut into stages of three, on eight devices each.
const blocks, stages, tensor, samples = 105, 35, 8, 1920

// Measure tells, for an order that is 1F1B, which place what was published has among the best plan
// of each size of tensor and pipeline parallelism, and how long the published one takes with an
// efficiency that makes the first point right.
func Measure(order pipeline.Ordering) func(uint64) map[string]float64 {
	return func(uint64) map[string]float64 {
		q, r := parallel.Sequence{Name: "1f1b", Order: order}, map[string]float64{}
		for _, p := range published {
			r["place_"+p.name] = place(simulator(p.nodes, 0), q)
		}
		low, high := 0., 1.
		for range 20 { // a higher efficiency never takes longer
			if half := (low + high) / 2; takes(simulator(published[0].nodes, half), q) > published[0].seconds {
				low = half
			} else {
				high = half
			}
		}
		r["efficiency"] = high
		for _, p := range published {
			r["fitted_"+p.name] = takes(simulator(p.nodes, high), q) / p.seconds
		}
		overSites(q, r)
		return r
	}
}

// far are links between two sites, of a node for itself: from Virginia to Oregon as DT-FM has
// them measured, ten times that, and two halls of one place.
var far = []parallel.Link{{Bandwidth: 1_150, Latency: 67_000}, {Bandwidth: 10_000, Latency: 10_000}, {Bandwidth: 100_000, Latency: 100}}

// overSites tells what the planner gains where it may put copies apart, a group at each of two sites of
// eight nodes, against stages in the order of the devices.
func overSites(q parallel.Sequence, r map[string]float64) {
	least := 1.
	r["apart_chosen"] = 0
	for _, name := range []string{"gpt-22b", "llama-3-8b", "llama-3-70b"} {
		form, why := shape.Find(name)
		profile, whys := shape.New(form, shape.Half)
		kind, not := shape.Device("A100-80GB", shape.Half)
		if why+not != "" || len(whys) > 0 {
			panic(why + not) // all are presets
		}
		for i := range 2 * len(far) {
			link, batch := far[i/2], 512<<(3*(i%2))
			on := parallel.Even(kind, 16, 8, 8*200_000)
			on.Sites = [][]parallel.Link{{{}, link}, {link, {}}}
			for k := range on.Nodes {
				on.Nodes[k].Site = int32(k / 8)
			}
			m := &parallel.Model{Name: name, Profile: profile, Batch: batch, State: parallel.ShardedAdam}
			best := func(together bool) parallel.Candidate {
				g := parallel.Grid{Sequences: []parallel.Sequence{q}, Together: together}
				all, why := g.Search(parallel.NewSimulator(m, on), parallel.Limits{})
				if why != "" {
					panic(why) // 128 devices hold them
				}
				return all[0]
			}
			free := best(false)
			over := float64(free.Result.Step) / float64(best(true).Result.Step)
			r["apart_most"], least = max(r["apart_most"], over), min(least, over)
			if s, like := free.Plan.Shape(); like && s.Apart > 1 {
				r["apart_chosen"]++
			}
		}
	}
	r["apart_least"] = least
}

// simulator is of the model on so many nodes, with a network of 8 x 200 Gbit/s each; an efficiency
// of 0 is what is known of the device.
func simulator(nodes int, efficiency float64) *parallel.Simulator {
	s, why := shape.Find("mt-nlg")
	profile, whys := shape.New(s, shape.Half)
	kind, not := shape.Device("A100-80GB", shape.Half)
	if why+not != "" || len(whys) > 0 {
		panic(why + not) // all three are presets
	}
	if efficiency > 0 {
		kind.Reach = efficiency
	}
	m := &parallel.Model{Name: s.Name, Profile: profile, Batch: samples, State: parallel.MixedAdam}
	return parallel.NewSimulator(m, parallel.Even(kind, nodes, 8, 8*200_000))
}

// place is that of the best plan over eight devices a layer and a number of stages that divides
// the blocks, among the best plan of each size.
func place(x *parallel.Simulator, q parallel.Sequence) float64 {
	// Tensor parallelism is tried up to a node, stages up to a block each.
	var best []parallel.Candidate
	g := parallel.Grid{Sequences: []parallel.Sequence{q}}
	for t := 1; t <= 8; t *= 2 {
		for ranks := 1; ranks <= blocks; ranks++ {
			if x.On.Len()%(t*ranks) != 0 {
				continue
			}
			if found, why := g.Search(x, parallel.Limits{Tensor: t, Ranks: ranks}); why == "" {
				best = append(best, found[0])
			}
		}
	}
	slices.SortStableFunc(best, func(a, b parallel.Candidate) int { return cmp.Compare(a.Result.Step, b.Result.Step) })
	return 1 + float64(slices.IndexFunc(best, func(c parallel.Candidate) bool {
		ranks := c.Plan.Pipelines[0].Ranks
		return ranks[0].Tensor == tensor && blocks%len(ranks) == 0
	}))
}

// takes is the step of the published plan in seconds: three blocks a stage, the embedding with the
// first and the head with the last, microbatches of one sample, all of a block computed again.
func takes(x *parallel.Simulator, q parallel.Sequence) float64 {
	// 8, 10 and 12 of them.
	copies := x.On.Len() / tensor / stages
	s := parallel.Shape{Sequence: q, Samples: 1, Microbatches: samples / copies, Tensor: tensor, Ranks: stages, Copies: copies, Ways: make([]int8, blocks+2)}
	for i := range blocks {
		if s.Ways[1+i] = 2; i > 0 && i%(blocks/stages) == 0 {
			s.Cuts = append(s.Cuts, int32(1+i))
		}
	}
	// Devices of a layer in one node, copies of a stage side by side: as it was placed.
	plan := s.Plan()
	r, why := x.Simulate(&plan)
	if why != "" {
		panic(why) // it was run
	}
	return r.Step.Seconds()
}
