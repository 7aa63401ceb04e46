package oobleck

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/pipeline/parallel"
)

// mixes are the best mixes of one or two sizes of templates for all nodes, with at least so many
// pipelines, by how long a step takes without the exchange. One or two sizes always do: as many
// pipelines as the least size allows, each of the nodes over their number, some with one more.
func (f *Family) mixes(nodes, pipelines, most int) (best [][]int) {
	type mix struct {
		sizes []int
		takes float64
	}
	var all []mix
	add := func(small, large, larges int) {
		rest := nodes - large*larges
		if f.Of(small) == nil || larges > 0 && f.Of(large) == nil || rest < 0 || rest%small != 0 {
			return
		}
		n := rest/small + larges
		if n < pipelines || n > f.batches || f.Alone && n > 1 {
			return
		}
		sizes := slices.Concat(slices.Repeat([]int{large}, larges), slices.Repeat([]int{small}, rest/small))
		all = append(all, mix{sizes, f.slowest(sizes, f.share(sizes))})
	}
	for small := f.Least; small < f.Least+len(f.Templates); small++ {
		add(small, small, 0)
		for large := small + 1; large < f.Least+len(f.Templates); large++ {
			for larges := 1; larges*large < nodes; larges++ {
				add(small, large, larges)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b mix) int { return cmp.Compare(a.takes, b.takes) })
	for _, m := range all[:min(most, len(all))] {
		best = append(best, m.sizes)
	}
	return best
}

// share divides the microbatches of a step among pipelines of so many nodes, at least one to each,
// so that the slowest takes as short as can be. It searches for the instant by which they can all
// be done together: the more time, the more microbatches.
func (f *Family) share(sizes []int) []int {
	shares := make([]int, len(sizes))
	fits := func(limit float64) (sum int) {
		for i, n := range sizes {
			t := f.Of(n)
			shares[i] = max(1, int((limit-t.First)/t.More))
			sum += shares[i]
		}
		return sum
	}
	// Even alone, any of them would be done with the whole batch by the latest of these.
	low, high := 0., 0.
	for _, n := range sizes {
		high = max(high, f.Of(n).takes(float64(f.batches+1)))
	}
	for range 60 {
		if mid := (low + high) / 2; fits(mid) < f.batches {
			low = mid
		} else {
			high = mid
		}
	}
	for over := fits(high) - f.batches; over > 0; over-- { // those that end last give back
		last := -1
		for i, n := range sizes {
			if shares[i] > 1 && (last < 0 || f.Of(n).takes(float64(shares[i])) > f.Of(sizes[last]).takes(float64(shares[last]))) {
				last = i
			}
		}
		shares[last]--
	}
	return shares
}

// slowest is how long the pipeline takes that ends last.
func (f *Family) slowest(sizes, shares []int) float64 {
	last := 0.
	for i, n := range sizes {
		last = max(last, f.Of(n).takes(float64(shares[i])))
	}
	return last
}

// plan makes pipelines of groups of nodes, and shares the batch among them. The batch is that of
// the model in every plan: training goes on as if nothing had happened.
func (f *Family) plan(groups [][]int32) (p parallel.Plan, why parallel.Why) {
	if len(groups) > f.batches {
		return p, parallel.Why(fmt.Sprintf("%d pipelines and %d microbatches: expected one for each at least", len(groups), f.batches))
	}
	sizes := make([]int, len(groups))
	for i, g := range groups {
		if sizes[i] = len(g); f.Of(sizes[i]) == nil {
			return p, parallel.Why(fmt.Sprintf("there is no template of %d nodes", len(g)))
		}
	}
	p = parallel.Plan{Samples: f.Samples, Sequence: f.Sequence}
	for i, n := range f.share(sizes) {
		p.Pipelines = append(p.Pipelines, f.pipeline(f.Of(sizes[i]), groups[i], n))
	}
	return p, ""
}

// Recover is how a run goes on without the nodes of some devices. Only the pipelines that lost
// nodes, and those that lend some, change; the others get another part of the batch.
func (f *Family) Recover(x *parallel.Simulator, p *parallel.Plan, lost []int32) (r parallel.Recovery, why parallel.Why) {
	// A stage is on devices of one node, which sum up with each other at every layer: of a node with
	// a device less no stage is what it was, and the node is left out until it is whole.
	gone := map[int32]bool{}
	for _, d := range lost {
		gone[x.On.NodeOf(d)] = true
	}
	had := f.groups(x, p)
	for i, group := range had {
		for _, other := range had[:i] {
			if slices.ContainsFunc(group, func(n int32) bool { return slices.Contains(other, n) }) {
				return r, "its pipelines share nodes: expected a plan of templates, each on nodes of its own"
			}
		}
	}
	groups, why := f.regroup(had, gone)
	if why != "" {
		return r, why
	}
	after, why := f.plan(groups)
	if why != "" {
		return r, why
	}
	return x.Recovery(p, &after, lost)
}

// groups are the nodes of each pipeline, in the order of their stages: nodes that stay then keep
// about the layers that they have, and little is copied.
func (f *Family) groups(x *parallel.Simulator, p *parallel.Plan) (all [][]int32) {
	for _, one := range p.Pipelines {
		var group []int32
		for _, r := range one.Ranks {
			for _, d := range r.Devices {
				if n := x.On.NodeOf(d); !slices.Contains(group, n) {
					group = append(group, n)
				}
			}
		}
		all = append(all, group)
	}
	return all
}

// regroup takes nodes out of their pipelines. One with fewer nodes left than the least template
// borrows them from the largest pipeline that can spare one; where none can, it is merged with
// others that are short, and in the end with a whole one. That always has a template: where nobody
// can spare a node all others are of the least size, and the short one is below it.
func (f *Family) regroup(groups [][]int32, gone map[int32]bool) (all [][]int32, why parallel.Why) {
	var short [][]int32
	left := 0
	for _, g := range groups {
		g = slices.DeleteFunc(slices.Clone(g), func(n int32) bool { return gone[n] })
		switch left += len(g); {
		case len(g) >= f.Least:
			all = append(all, g)
		case len(g) > 0:
			short = append(short, g)
		}
	}
	if left < f.Least {
		return nil, parallel.Why(fmt.Sprintf("%d nodes are left: expected %d, on which the model fits, or a restart when they are back", left, f.Least))
	}
	for len(short) > 0 {
		at := largest(short)
		one := short[at]
		short = slices.Delete(short, at, at+1)
		// To borrow changes two pipelines and keeps their number, to merge makes one fewer.
		for len(one) < f.Least {
			from := largest(all)
			switch {
			case from >= 0 && len(all[from]) > f.Least:
				last := len(all[from]) - 1
				one, all[from] = append(one, all[from][last]), all[from][:last]
			case len(short) > 0:
				one = append(one, short[0]...)
				short = short[1:]
			default:
				one = append(one, all[from]...)
				all = slices.Delete(all, from, from+1)
			}
		}
		all = append(all, one)
	}
	return all, ""
}

// largest is the group with most nodes, -1 of none.
func largest(groups [][]int32) int {
	best, most := -1, math.MinInt
	for i, g := range groups {
		if len(g) > most {
			best, most = i, len(g)
		}
	}
	return best
}
