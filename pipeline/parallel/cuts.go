package parallel

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
)

// Cuts cuts the layers of a shape into the stages that its sequence has, as somebody cuts or, for
// nil, of times as equal as can be; or it says why there is no such plan.
func (x *Simulator) Cuts(s *Shape, by pipeline.Partitioner) ([]int32, Why) {
	if why := s.tooMany(); why != "" {
		return nil, why
	}
	of, why := x.routes(s.Sequence, s.Ranks, s.Microbatches)
	if why == "" {
		why = of.copied(s)
	}
	if why != "" {
		return nil, why
	}
	g := Grid{x: x, Cut: by}
	why = g.cut(s, of)
	return s.Cuts, why
}

// cut cuts the layers of a shape.
func (g *Grid) cut(s *Shape, of routes) (why Why) {
	n := g.x.Model.Profile.Layers()
	if of.stages() > n {
		return whyf("%s has %d stages on %d ranks: expected no more than the %d layers", s.Sequence.Name, of.stages(), s.Ranks, n)
	}
	if g.Cut == nil {
		s.Cuts, why = g.x.Cut(s, of.stages())
		return why
	}
	// A partitioner knows measured layers, of which backward passes are whole.
	layers := make([]workload.Layer, n)
	for i := range layers {
		l, why := g.x.Layer(i, 0, s.Tensor, s.Samples, s.Ways)
		if why != "" {
			return why
		}
		layers[i] = workload.Layer{Forward: l.Forward, Backward: l.Again + l.Input + l.Weight, ParamKiB: l.ParamKiB, OutputKiB: l.OutputKiB, ActivationKiB: l.ActivationKiB}
	}
	on := pipeline.Params{Memory: g.x.On.Kind(0).Room(), ParamCopies: int64(g.x.Model.State.Weights + g.x.Model.State.Gradients + g.x.Model.State.Optimizer + .5)}
	if plan := s.Plan(); s.Ranks > 1 {
		link := g.x.On.Between(plan.Pipelines[0].Ranks[0].Devices, plan.Pipelines[0].Ranks[1].Devices)
		on.Bandwidth, on.Latency = link.Bandwidth, link.Latency
	}
	shape, why := s.Sequence.Order.Schedule(s.Ranks, s.Microbatches, nil)
	if why == "" {
		s.Cuts, why = g.Cut.Cut(layers, shape.Stages(), on.PerStage(&shape))
	}
	return why
}

// Cut cuts the layers of a shape into so many stages, of times as equal as can be.
func (x *Simulator) Cut(s *Shape, stages int) ([]int32, Why) {
	n := x.Model.Profile.Layers()
	key := cut{s.Tensor, s.Samples, stages, s.Experts, -1}
	if s.Ways != nil {
		key.way = s.Ways[n/2]
	}
	if cuts, seen := x.cuts[key]; seen {
		return cuts, ""
	}
	rank := Rank{Tensor: s.Tensor, Replicas: 1, Devices: make([]int32, s.Tensor)}
	if s.Experts > 1 { // where tokens go depends on where the copies stand
		plan := s.Plan()
		rank = plan.group(0, 0)
	}
	sums, why := x.Sums(&rank, s.Samples, s.Copies, s.Ways)
	if why != "" {
		return nil, why
	}
	// Links are left out: all plans of a search cut the same layers, and what is sent between blocks is
	// the same everywhere.
	chain := pipeline.Chain{Layers: n, Link: func(_, _, _ int) unit.Duration { return 0 },
		Stage: func(_, first, end int) unit.Duration {
			stage := sums.Stage(first, end)
			return stage.Forward + stage.Input + stage.Weight
		}}
	x.cuts[key] = chain.Slowest(stages).First
	return x.cuts[key], ""
}

// cut names a cut that was made.
type cut struct {
	tensor, samples, stages, experts int
	way                              int8
}
