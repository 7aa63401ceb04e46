// Package hetpipe spreads a model over unlike devices as HetPipe does (Park et al., "HetPipe:
// Enabling Large DNN Training on (Whimpy) Heterogeneous GPU Clusters through Integration of
// Pipelined Model Parallelism and Data Parallelism", ATC 2020). Some devices, fast and slow ones,
// form a virtual worker: a pipeline with a device for each stage. Which device holds which stage,
// and where the layers are cut, is chosen together, so that the slowest stage, what it receives
// counted in, is as fast as can be and fits beside what its place keeps in flight: the first
// stages keep most. Of equal ones the way through all stages is short. Virtual workers are the
// nodes, or have one device of each node, or there is one of all; the simulation chooses.
//
// The authors solve an integer program for each order of the devices. Here it is a dynamic
// program over places: how many devices of each node are taken, and which was the last; nodes that
// are alike count as one. The order of the passes is another part: hetpipe has its waves.
//
// Left out: workers of several devices of some nodes (the authors' third way to form them), the
// server of parameters, for which gradients are exchanged after each step, and computing
// activations again.
package hetpipe

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "hetpipe-workers", System: "HetPipe", Part: parallel.PlannerPart, Status: "after",
	Source: "HetPipe (Park et al., ATC 2020; abstract and what others tell of it)",
	Idea:   "fast and slow devices form one pipeline: which of them holds which layers, so that the slowest stage is fastest and all fit",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile",
	Live: parallel.LiveOrder,
}

// Planner is the search; it has nothing to configure.
type Planner struct{}

var _ parallel.Planner = Planner{}

func whyf(format string, args ...any) parallel.Why { return parallel.Why(fmt.Sprintf(format, args...)) }

// Plans tries the ways to form virtual workers, and microbatches of all sizes.
func (Planner) Plans(x *parallel.Simulator, l parallel.Limits) (all []parallel.Candidate, why parallel.Why) {
	if l.Tensor > 1 {
		return nil, whyf("tensor %d: a stage of a virtual worker is one device", l.Tensor)
	}
	why = "the devices form no virtual workers of the sizes that were asked for"
	for _, workers := range formed(x.On, l) {
		if x.Model.Batch%len(workers) != 0 {
			why = whyf("a batch of %d on %d virtual workers: expected as many samples on each", x.Model.Batch, len(workers))
			continue
		}
		for _, q := range l.Sequences {
			fastest := unit.Forever
			for samples := 1; samples <= x.Model.Batch/len(workers); samples++ {
				if x.Model.Batch/len(workers)%samples != 0 || l.Samples > 0 && samples > l.Samples || l.Stages && samples > 1 {
					continue
				}
				p, not := plan(x, workers, q, samples)
				var some []parallel.Candidate
				if not == "" {
					some, not = x.Candidates(p)
				}
				if not != "" {
					why = not
					break // a larger one keeps more
				}
				if all = append(all, some...); some[0].Result.Step >= fastest {
					break
				}
				fastest = some[0].Result.Step
			}
		}
	}
	if len(all) > 0 {
		why = ""
	}
	return parallel.Pareto(all), why
}

// formed are the ways to form virtual workers, each with its devices, within limits.
func formed(on *parallel.Devices, l parallel.Limits) (all [][][]int32) {
	nodes := make([][]int32, len(on.Nodes))
	devices := on.Len()
	if l.Devices > 0 {
		devices = min(devices, l.Devices)
	}
	one := []int32{}
	for d := range int32(devices) {
		nodes[on.NodeOf(d)] = append(nodes[on.NodeOf(d)], d)
		one = append(one, d)
	}
	nodes = slices.DeleteFunc(nodes, func(n []int32) bool { return len(n) == 0 })
	// A run with a worker process for each stage is one pipeline; what else there is to choose
	// from depends on the nodes.
	ways := [][][]int32{{one}}
	if !l.Stages && len(nodes) > 1 {
		each := make([][]int32, len(nodes[0]))
		for _, node := range nodes {
			for i := range each {
				if len(node) != len(each) {
					each = nil // a node has no device for each worker
					break
				}
				each[i] = append(each[i], node[i])
			}
		}
		if ways = append(ways, nodes); each != nil {
			ways = append(ways, each)
		}
	}
	for _, way := range ways {
		fits := func(worker []int32) bool { return l.Ranks == 0 || len(worker) == l.Ranks }
		if (l.Copies == 0 || len(way) == l.Copies) && !slices.ContainsFunc(way, func(w []int32) bool { return !fits(w) }) {
			all = append(all, way)
		}
	}
	return all
}

// plan cuts each of the virtual workers.
func plan(x *parallel.Simulator, workers [][]int32, q parallel.Sequence, samples int) (p parallel.Plan, why parallel.Why) {
	p = parallel.Plan{Samples: samples, Sequence: q}
	microbatches := x.Model.Batch / len(workers) / samples
	for _, devices := range workers {
		order, why := q.Order.Schedule(len(devices), microbatches, nil)
		if why != "" {
			return p, why
		}
		if order.Stages() != len(devices) || len(order.Routes) > 1 {
			return p, whyf("%s has %d stages on %d ranks: expected one on each", q.Name, order.Stages(), len(devices))
		}
		w, why := newWorker(x, devices, samples, len(workers))
		if why != "" {
			return p, why
		}
		one := parallel.Pipeline{Microbatches: microbatches}
		if one.Cuts, devices, why = w.cut(order.InFlight()); why != "" {
			return p, why
		}
		for _, d := range devices {
			one.Ranks = append(one.Ranks, parallel.Rank{Tensor: 1, Replicas: 1, Devices: []int32{d}})
		}
		p.Pipelines = append(p.Pipelines, one)
	}
	return p, ""
}

// cut chooses where each stage stands, and where the layers are cut.
func (w *worker) cut(inFlight []int32) (cuts, devices []int32, why parallel.Why) {
	if why = w.places(); why != "" {
		return nil, nil, why
	}
	chain := pipeline.Chain{Layers: w.layers, Before: w.before,
		Stage: func(place, first, end int) unit.Duration {
			s := &w.states[place]
			return w.spots[s.last].sums.Takes(first, end, inFlight[s.taken()-1])
		},
		Link: func(from, place, layer int) unit.Duration {
			if from < 0 {
				return 0
			}
			here, there := &w.spots[w.states[from].last], &w.spots[w.states[place].last]
			if w.states[place].stays {
				return here.sums.Both(layer, w.on.Kind(here.devices[0]).Inside)
			}
			return here.sums.Both(layer, w.on.Between(here.devices[:1], w.other(there, here)))
		}}
	// Two searches, because a time and a sum are not to be weighed against each other: first how
	// fast the slowest can be, then the shortest way through stages that are no slower.
	slowest := chain.Search(w.devices, unit.Forever, func(before, stage, link unit.Duration) unit.Duration { return max(before, stage+link) })
	if slowest.Cost == unit.Forever {
		return nil, nil, whyf("no cut of %d layers over these %d devices fits, in whatever order they stand: more devices or smaller microbatches would help", w.layers, w.devices)
	}
	found := chain.Search(w.devices, unit.Forever, func(before, stage, link unit.Duration) unit.Duration {
		if stage+link > slowest.Cost {
			return unit.Forever
		}
		return before + stage + link
	})
	return found.First, w.follow(found.Places), ""
}
