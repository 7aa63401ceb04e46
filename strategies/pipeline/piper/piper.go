// Package piper spreads a model as Piper does (Tarnawski, Narayanan and Phanishayee, "Piper:
// Multidimensional Planner for DNN Parallelization", NeurIPS 2021): each stage has a degree of
// tensor parallelism, of data parallelism and a choice of what is computed again of its own. A
// dynamic program over the sets of layers that can stand at the end, over devices and over what
// is under way finds the plan whose slowest stage takes least of a microbatch; a knapsack tells
// how each layer runs so that a stage fits its memory.
//
// Changed: replicas share each microbatch where Piper's take turns, as our pipelines know no
// turns; the program goes by stages then, not by replicas. Added: the best plan for each number
// of stages is simulated, with microbatches of several sizes and with copies of the whole, and
// the knapsack is exact. Left out: devices of several kinds, all count as the first.
package piper

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "piper", System: "Piper", Part: parallel.PlannerPart, Status: "read",
	Source: "Piper (Tarnawski et al., NeurIPS 2021) and msr-fiddle/piper",
	Idea:   "each stage has its own tensor and data parallelism and what it computes again: the slowest as fast as can be, by one program",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile", Live: parallel.Live,
}

// Planner is the search; it has nothing to configure.
type Planner struct{}

var _ parallel.Planner = Planner{}

// mostUnits bounds what the program hands out, and so how long it takes: a copy of the model on
// more devices gets them several at a time.
const mostUnits = 64

// Plans solves the program for copies and microbatches of several sizes, and simulates what it finds.
func (Planner) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	n := x.On.Len()
	if l.Devices > 0 {
		n = min(n, l.Devices)
	}
	p := planning{x: x, limits: l, why: "no number of stages fits the memory of the devices"}
	if l.Stages {
		p.try(n, 1, 1)
	} else {
		for copies := 1; copies <= min(n, x.Model.Batch); copies++ {
			if n%copies != 0 || x.Model.Batch%copies != 0 || l.Copies > 0 && copies != l.Copies {
				continue
			}
			for samples := 1; samples <= mostSamples && (l.Samples == 0 || samples <= l.Samples); samples *= 2 {
				if x.Model.Batch/copies%samples == 0 {
					p.try(n/copies, copies, samples)
				}
			}
		}
	}
	if len(p.all) > 0 {
		p.why = ""
	}
	return parallel.Pareto(p.all), p.why
}

// mostSamples is the largest microbatch that is tried.
const mostSamples = 8

// planning is one search.
type planning struct {
	x      *parallel.Simulator
	limits parallel.Limits
	all    []parallel.Candidate
	why    parallel.Why
}

// try solves the program for one copy on so many devices, and keeps what can run.
func (p *planning) try(devices, copies, samples int) {
	g := p.chain(devices, copies, samples)
	// Replicas share microbatches here, so that the sum counts stages: there are no more of them
	// than layers, or than units of devices.
	sums := min(g.Nodes, devices/g.Unit)
	v, err := Solve(g, sums)
	if err != nil {
		return // a chain has as many downsets as layers
	}
	if p.limits.Stages {
		p.simulate(halved(v.Stages(sums), devices), copies, samples)
		return
	}
	// More stages are worth a look only where they make the slowest faster: each costs time to
	// fill the pipeline, which the program does not count and the simulation does.
	for sum := 1; sum <= sums; sum++ {
		if v.Best(sum) < v.Best(sum-1) && (p.limits.Ranks == 0 || sum == p.limits.Ranks) {
			p.simulate(v.Stages(sum), copies, samples)
		}
	}
}

// halved are stages of which the longest are halved until there are enough: a program that goes
// by the slowest does not ask for more of them than that needs.
func halved(stages []Stage, enough int) []Stage {
	for len(stages) < enough {
		longest := 0
		for i, s := range stages {
			if len(s.Nodes) > len(stages[longest].Nodes) {
				longest = i
			}
		}
		// Its ways stay: what they hold only gets less.
		s := stages[longest]
		half := len(s.Nodes) / 2
		if half == 0 {
			break
		}
		first, second := s, s
		first.Nodes, first.Configs = s.Nodes[:half], s.Configs[:half]
		second.Nodes, second.Configs = s.Nodes[half:], s.Configs[half:]
		stages = slices.Replace(stages, longest, longest+1, first, second)
	}
	return stages
}

// simulate tries a plan with each sequence.
func (p *planning) simulate(stages []Stage, copies, samples int) {
	batch := p.x.Model.Batch
	// All copies are alike but for their devices.
	one := parallel.Pipeline{Microbatches: batch / copies / samples, Ways: make([]int8, p.x.Model.Profile.Layers())}
	for i, s := range stages {
		if i > 0 {
			one.Cuts = append(one.Cuts, int32(s.Nodes[0]))
		}
		for k, n := range s.Nodes {
			one.Ways[n] = int8(s.Configs[k])
		}
	}
	// A tensor degree that fits no node, or more memory than the program thought of, is said by
	// the simulation, and the plan is none.
	pipelines := p.place(stages, one, copies)
	for _, q := range p.limits.Sequences {
		plan := parallel.Plan{Samples: samples, Sequence: q, Pipelines: pipelines}
		r, why := p.x.Simulate(&plan)
		if why != "" {
			p.why = why
			continue
		}
		p.all = append(p.all, parallel.Candidate{Plan: plan, Result: r})
	}
}

// place gives the stages of all copies their devices: those that split most go first, so that
// each group finds room in one node; otherwise neighbours are neighbours.
func (p *planning) place(stages []Stage, one parallel.Pipeline, copies int) []parallel.Pipeline {
	pipelines := make([]parallel.Pipeline, copies)
	for i := range pipelines {
		pipelines[i] = one
		pipelines[i].Ranks = make([]parallel.Rank, len(stages))
	}
	order := make([]int, len(stages))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(stages[b].Tensor, stages[a].Tensor) })
	// Devices that are not taken yet, by node.
	free := make([][]int32, len(p.x.On.Nodes))
	for d := range int32(p.x.On.Len()) {
		free[p.x.On.NodeOf(d)] = append(free[p.x.On.NodeOf(d)], d)
	}
	for _, s := range order {
		t, node := stages[s].Tensor, 0
		for i := range pipelines {
			rank := &pipelines[i].Ranks[s]
			rank.Tensor, rank.Replicas = t, stages[s].Replicas
			for range rank.Replicas {
				for node < len(free)-1 && len(free[node]) < t {
					node++
				}
				take := min(t, len(free[node])) // of too few the check of the plan says so
				rank.Devices, free[node] = append(rank.Devices, free[node][:take]...), free[node][take:]
			}
		}
	}
	return pipelines
}
