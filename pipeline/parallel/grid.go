package parallel

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Grid goes through the plans of like pipelines over like devices: the sizes of tensor,
// pipeline and data parallelism, of a microbatch, the orders, and ways to run all layers. A
// closed form only says which plans cannot be better than one that was simulated.
type Grid struct {
	// Tensors, Ranks and Samples are the sizes to try; none means all that divide.
	Tensors, Ranks, Samples []int
	Sequences               []Sequence
	// Equal cuts into as many layers each, instead of as much time.
	Equal bool
	// Lean tries leaner ways only where the faster ones do not fit.
	Lean bool
}

// point is one place on the grid, before it is simulated.
type point struct {
	shape  Shape
	stages int
	way    int8
	least  unit.Duration // no plan of it is faster
}

// Search simulates what could be best, and returns what fits; or why nothing does, of the plan
// that lacked least.
func (g *Grid) Search(x *Simulator, l Limits) (all []Candidate, why Why) {
	points, why := g.points(x, l)
	best := unit.Forever
	for i := range points {
		at := &points[i]
		if at.least >= best {
			break // they ascend
		}
		plan := at.shape.Plan()
		r, not := x.Simulate(&plan)
		if not != "" {
			if why == "" {
				why = not
			}
			continue
		}
		all, best = append(all, Candidate{plan, r}), min(best, r.Step)
	}
	if len(all) > 0 {
		why = ""
	}
	return all, why
}

// points are the plans that may fit, the most promising first, or why there is none.
func (g *Grid) points(x *Simulator, l Limits) (all []point, why Why) {
	n := x.On.Len()
	if l.Devices > 0 {
		n = min(n, l.Devices)
	}
	inNode := int(slices.MinFunc(x.On.Nodes, func(a, b Node) int { return cmp.Compare(a.Count, b.Count) }).Count)
	if l.Stages {
		alone := *g
		alone.Tensors, alone.Ranks, alone.Samples, alone.Lean, g = []int{1}, []int{n}, []int{1}, true, &alone
	}
	for _, tensor := range sizes(g.Tensors, inNode) {
		if n%tensor != 0 {
			continue
		}
		for _, ranks := range sizes(g.Ranks, n/tensor) {
			copies := n / tensor / ranks
			if n/tensor%ranks != 0 || ranks > x.Model.Profile.Layers() || x.Model.Batch%copies != 0 {
				continue
			}
			for _, samples := range sizes(g.Samples, x.Model.Batch/copies) {
				if l.Samples > 0 && samples > l.Samples || x.Model.Batch/copies%samples != 0 {
					continue
				}
				s := Shape{Samples: samples, Microbatches: x.Model.Batch / copies / samples, Tensor: tensor, Ranks: ranks, Copies: copies}
				some, not := g.orders(x, s)
				if all = append(all, some...); why == "" {
					why = not
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.least, b.least) })
	if len(all) == 0 && why == "" {
		why = whyf("no sizes of tensor, pipeline and data parallelism divide %d devices and a batch of %d", n, x.Model.Batch)
	}
	return all, why
}

// sizes are those that were asked for, or all up to a most that divide it.
func sizes(asked []int, most int) (all []int) {
	if len(asked) > 0 {
		return asked
	}
	for n := 1; n <= most; n++ {
		if most%n == 0 {
			all = append(all, n)
		}
	}
	return all
}

// orders are the plans of one shape: its sequences and ways.
func (g *Grid) orders(x *Simulator, s Shape) (all []point, why Why) {
	ways, why := x.Ways(x.Model.Profile.Layers()/2, 0, s.Tensor, s.Samples)
	if why != "" {
		return nil, why
	}
	for w := range ways {
		s.Ways = nil
		if w > 0 {
			s.Ways = slices.Repeat([]int8{int8(w)}, x.Model.Profile.Layers())
		}
		fitted := false
		for _, q := range g.Sequences {
			s.Sequence = q
			p, not := g.point(x, s)
			if not != "" {
				if why == "" {
					why = not
				}
				continue
			}
			all, fitted = append(all, p), true
		}
		if g.Lean && fitted {
			break
		}
	}
	return all, why
}

// point cuts a shape, and says how fast it can be at best, or why it cannot be.
func (g *Grid) point(x *Simulator, s Shape) (point, Why) {
	shape, why := s.Sequence.Order.Schedule(s.Ranks, s.Microbatches, nil)
	if why != "" {
		return point{}, why
	}
	if shape.Stages() > x.Model.Profile.Layers() {
		return point{}, whyf("%s has %d stages on %d ranks: expected no more than the %d layers", s.Sequence.Name, shape.Stages(), s.Ranks, x.Model.Profile.Layers())
	}
	if s.Cuts, why = x.Cut(&s, shape.Stages(), g.Equal); why != "" {
		return point{}, why
	}
	p := point{shape: s, stages: shape.Stages()}
	busy, held := make([]unit.Duration, s.Ranks), make([]int64, s.Ranks)
	rank := Rank{Tensor: s.Tensor, Replicas: 1, Devices: make([]int32, s.Tensor)}
	ends := append(slices.Clone(s.Cuts), int32(x.Model.Profile.Layers()))
	first := 0
	for stage, end := range ends {
		costs, _, why := x.Stage(&rank, Slice{first, int(end), s.Ways}, s.Samples, s.Copies)
		if why != "" {
			return point{}, why
		}
		for _, route := range shape.Routes {
			busy[route[stage]] += (costs.Forward + costs.Input + costs.Weight) * unit.Duration(s.Microbatches) / unit.Duration(len(shape.Routes))
			held[route[stage]] += costs.ParamKiB + costs.StateKiB + costs.ActivationKiB/int64(len(shape.Routes))
		}
		first = int(end)
	}
	// No order is faster than its busiest rank, and none holds less than the weights and one
	// microbatch: the two are what a plan is left out for before it is simulated.
	p.least = slices.Max(busy)
	if has := int64(x.On.Kind(0).Memory) << 10; has > 0 && slices.Max(held) > has {
		return point{}, whyf("weights, their state and one microbatch need %v of device memory, a %s has %v", unit.MiB(slices.Max(held)>>10), x.On.Kind(0).Name, x.On.Kind(0).Memory)
	}
	return p, ""
}

// Cut cuts the layers of a shape into so many stages: of equal numbers, or of times as equal
// as can be.
func (x *Simulator) Cut(s *Shape, stages int, equal bool) ([]int32, Why) {
	n := x.Model.Profile.Layers()
	if equal {
		cuts := make([]int32, stages-1)
		for i := range cuts {
			cuts[i] = int32(((i + 1) * n) / stages)
		}
		return cuts, ""
	}
	key := cut{s.Tensor, s.Samples, stages, -1}
	if s.Ways != nil {
		key.way = s.Ways[0]
	}
	if cuts, seen := x.cuts[key]; seen {
		return cuts, ""
	}
	sum := make([]unit.Duration, n+1)
	for i := range n {
		l, why := x.Layer(i, 0, s.Tensor, s.Samples, s.Ways)
		if why != "" {
			return nil, why
		}
		sum[i+1] = sum[i] + l.Forward + l.Again + l.Input + l.Weight
	}
	chain := pipeline.Chain{Layers: n, Link: func(int) unit.Duration { return 0 },
		Stage: func(_, first, end int) unit.Duration { return sum[end] - sum[first] }}
	_, x.cuts[key] = chain.Slowest(stages)
	return x.cuts[key], ""
}

// cut names a cut that was made.
type cut struct {
	tensor, samples, stages int
	way                     int8
}
