// Package dtfm spreads a model over peers far apart as DT-FM does (Yuan et al., "Decentralized
// Training of Foundation Models in Heterogeneous Environments", NeurIPS 2022): which peers hold the
// same stage, which of them follow each other, and in which order the stages come, so that
// exchanging gradients and handing on activations take least of the links between them. Groups
// of equal size are searched by a genetic algorithm; who follows whom is the matching whose
// slowest pair is fastest, the order of stages the shortest open path.
//
// Changed: a child is improved by exchanges of the slowest peer, not by cycles of moves by gain;
// some of the first parents go by the numbers of the devices, as neighbours have them, and all
// chance comes from a seed. Added: layers are cut by the speed of the peers that hold a
// stage, and numbers of stages and sizes of microbatches are compared by simulation. Left out: more
// than 64 peers.
package dtfm

import (
	"fmt"
	"math/rand/v2"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/strategies/pipeline/dtfm/assign"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "dt-fm", System: "DT-FM", Part: parallel.PlannerPart, Status: "read",
	Source: "DT-FM (Yuan et al., NeurIPS 2022) and DS3Lab/DT-FM",
	Idea:   "which of unlike peers share a stage and which follow each other, so that slow links carry least",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: parallel.LiveOrder,
}

// Config is what a user may set.
type Config struct {
	Seed uint64 `yaml:"seed"` // of the search
}

// Default is what the strategy has where nobody says otherwise.
func Default() Config { return Config{Seed: 1} }

// Planner is the search.
type Planner struct{ config Config }

// New returns a planner.
func New(c Config) Planner { return Planner{c} }

var _ parallel.Planner = Planner{}

// mostPeers bounds what a search takes.
const mostPeers = 64

// mostSamples is the largest microbatch that is tried.
const mostSamples = 8

// Plans searches an assignment for each number of stages, and simulates it with microbatches of
// several sizes.
func (d Planner) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	n := x.On.Len()
	if l.Devices > 0 {
		n = min(n, l.Devices)
	}
	if n > mostPeers && !l.Stages {
		return nil, parallel.Why(fmt.Sprintf("%d devices: expected %d at most, as many as DT-FM assigns; ptd-p spreads over more", n, mostPeers))
	}
	p := planning{x: x, limits: l, why: parallel.Why(fmt.Sprintf("no number of stages divides %d devices and a batch of %d", n, x.Model.Batch))}
	for ranks := 1; ranks <= min(n, x.Model.Profile.Layers()); ranks++ {
		copies := n / ranks
		if n%ranks != 0 || x.Model.Batch%copies != 0 || l.Ranks > 0 && ranks != l.Ranks || l.Copies > 0 && copies != l.Copies || l.Tensor > 1 || l.Stages && copies > 1 {
			continue
		}
		lines, why := p.lines(n, ranks, rand.New(rand.NewPCG(d.config.Seed, uint64(ranks))))
		if why != "" {
			return nil, why
		}
		for samples := 1; samples <= mostSamples && (l.Samples == 0 || samples <= l.Samples) && !(l.Stages && samples > 1); samples *= 2 {
			if x.Model.Batch/copies%samples == 0 {
				p.try(lines, samples)
			}
		}
	}
	if len(p.all) > 0 {
		p.why = ""
	}
	return parallel.Pareto(p.all), p.why
}

// planning is one search.
type planning struct {
	x      *parallel.Simulator
	limits parallel.Limits
	all    []parallel.Candidate
	why    parallel.Why
}

// lines are the pipelines of the best assignment of the first devices to so many stages.
func (p *planning) lines(devices, ranks int, rng *rand.Rand) ([][]int, parallel.Why) {
	peers, why := peersOf(p.x, devices, ranks)
	if why != "" {
		return nil, why
	}
	// In one pipeline nobody exchanges, and the order of devices is all there is to find.
	if devices == ranks { // each group is one peer
		group := make([]int, devices)
		for i := range group {
			group[i] = i
		}
		return peers.Lines(assign.Assignment{Group: group}), ""
	}
	return peers.Lines(peers.Search(rng)), ""
}

// peersOf are the first devices, to be put into as many groups as there are stages. A stage is
// an equal part of the weights, and a pipeline hands on its part of the batch at once.
func peersOf(x *parallel.Simulator, devices, ranks int) (*assign.Peers, parallel.Why) {
	p := &assign.Peers{Groups: ranks, Sum: make([][]float64, devices), Send: make([][]float64, devices)}
	copies, paramKiB, outputKiB := devices/ranks, int64(0), int64(0)
	for i := range x.Model.Profile.Layers() {
		l, why := x.Layer(i, 0, 1, 1, nil)
		if why != "" {
			return nil, why
		}
		if paramKiB += l.ParamKiB; i < x.Model.Profile.Layers()-1 {
			outputKiB = max(outputKiB, l.OutputKiB)
		}
	}
	// Each peer sums up its part of the gradients: it gets that part from all others and sends the
	// sum to them, which is why the part goes over each link twice.
	gradients := int64(x.Model.State.Gradients * float64(paramKiB) / float64(ranks))
	takes := func(a, b int, kib int64) float64 {
		there, back := x.On.Between([]int32{int32(a)}, []int32{int32(b)}), x.On.Between([]int32{int32(b)}, []int32{int32(a)})
		return float64(max(there.Takes(kib), back.Takes(kib)))
	}
	for a := range devices {
		for b := range devices {
			if p.Sum[a], p.Send[a] = append(p.Sum[a], 0), append(p.Send[a], 0); a != b {
				p.Sum[a][b] = 2 * takes(a, b, gradients/int64(copies))
				p.Send[a][b] = takes(a, b, outputKiB*int64(x.Model.Batch/copies))
			}
		}
	}
	return p, ""
}

// try simulates the pipelines with each sequence, from the fastest way of all layers to the
// leanest, up to the first that fits.
func (p *planning) try(lines [][]int, samples int) {
	ways, why := p.x.Ways(p.x.Model.Profile.Layers()/2, 0, 1, samples)
	if why != "" {
		p.why = why
		return
	}
	// A leaner way never is faster: once a plan fits, those after it are not tried.
	for _, q := range p.limits.Sequences {
		for w := range ways {
			if w > 0 && p.limits.Stages {
				break
			}
			plan, why := p.plan(lines, samples, q, int8(w))
			var c []parallel.Candidate
			if why == "" {
				c, why = p.x.Candidates(plan)
			}
			if why == "" {
				p.all = append(p.all, c...)
				break
			}
			p.why = why
		}
	}
}

// plan cuts the layers by the slowest device of each stage.
func (p *planning) plan(lines [][]int, samples int, q parallel.Sequence, way int8) (plan parallel.Plan, why parallel.Why) {
	one := parallel.Pipeline{Microbatches: p.x.Model.Batch / len(lines) / samples, Ways: p.x.AllIn(way, 1)}
	plan = parallel.Plan{Samples: samples, Sequence: q}
	order, why := q.Order.Schedule(len(lines[0]), one.Microbatches, nil)
	if why != "" {
		return plan, why
	}
	var sums [][]*parallel.Sums // of each pipeline and rank
	for _, line := range lines {
		copied, of := one, []*parallel.Sums{}
		for _, device := range line {
			rank := parallel.Rank{Tensor: 1, Replicas: 1, Devices: []int32{int32(device)}}
			s, why := p.x.Sums(&rank, samples, len(lines), one.Ways)
			if why != "" {
				return plan, why
			}
			copied.Ranks, of = append(copied.Ranks, rank), append(of, s)
		}
		plan.Pipelines, sums = append(plan.Pipelines, copied), append(sums, of)
	}
	// A stage is as slow as the slowest device on which one of its copies stands.
	inFlight := order.InFlight()
	chain := pipeline.Chain{Layers: p.x.Model.Profile.Layers(), Link: func(_, _, _ int) unit.Duration { return 0 },
		Stage: func(stage, first, end int) (slowest unit.Duration) {
			for _, of := range sums {
				slowest = max(slowest, of[order.Routes[0][stage]].Takes(first, end, inFlight[stage]))
			}
			return slowest
		}}
	// The links are not counted in it: who stands where is decided before the cut.
	cut := chain.Slowest(order.Stages())
	if cut.Cost == unit.Forever {
		return plan, parallel.Why(fmt.Sprintf("no cut into %d stages fits the memory of the devices", order.Stages()))
	}
	for i := range plan.Pipelines {
		plan.Pipelines[i].Cuts = cut.First
	}
	return plan, ""
}
