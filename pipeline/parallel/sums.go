package parallel

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Sums are the layers of a model as a rank would run them, summed up from the first: what any
// stage costs are two reads. Planners cut by it.
type Sums struct {
	x       *Simulator
	sharers int
	memory  int64 // KiB of a device; 0 is endless
	to      []pipeline.Stage
	// spread are the KiB of experts that are spread, among the others, and copies over how many.
	spread []int64
	copies int
}

// Sums sums up the layers, each in its way, for a rank and microbatches of so many samples,
// where there are so many pipelines.
func (x *Simulator) Sums(rank *Rank, samples, pipelines int, ways []int8) (*Sums, Why) {
	n := x.Model.Profile.Layers()
	s := &Sums{x: x, sharers: rank.Replicas * pipelines, memory: int64(x.On.Kind(rank.Devices[0]).Room()) << 10, to: make([]pipeline.Stage, n+1),
		spread: make([]int64, n+1), copies: max(1, rank.Experts)}
	for i := range n {
		l, _, why := x.Stage(rank, Slice{i, i + 1, ways}, samples, pipelines)
		if why != "" {
			return nil, why
		}
		s.to[i+1] = s.to[i]
		sum := &s.to[i+1]
		sum.Forward += l.Forward
		sum.Input += l.Input
		sum.Weight += l.Weight
		sum.ParamKiB += l.ParamKiB
		sum.ActivationKiB += l.ActivationKiB
		sum.OutputKiB = l.OutputKiB
		if s.spread[i+1] = s.spread[i]; s.copies > 1 {
			way, why := x.Layer(i, x.On.Nodes[x.On.NodeOf(rank.Devices[0])].Kind, rank.Tensor, samples/rank.Replicas, ways)
			if why != "" {
				return nil, why
			}
			s.spread[i+1] += way.Mixture.heldKiB(s.copies)
		}
	}
	return s, ""
}

// Stage is what the layers from first to before end cost.
func (s *Sums) Stage(first, end int) pipeline.Stage {
	stage, before := s.to[end], &s.to[first]
	stage.Forward -= before.Forward
	stage.Input -= before.Input
	stage.Weight -= before.Weight
	stage.ParamKiB -= before.ParamKiB
	stage.ActivationKiB -= before.ActivationKiB
	spread := s.spread[end] - s.spread[first]
	if stage.StateKiB = s.x.stateKiB(stage.ParamKiB-spread, s.sharers); spread > 0 {
		stage.StateKiB += s.x.stateKiB(spread, s.sharers/s.copies)
	}
	return stage
}

// Takes is the time of all passes of a microbatch through the layers, and Forever where so many
// in flight do not fit a device.
func (s *Sums) Takes(first, end int, inFlight int32) unit.Duration {
	stage := s.Stage(first, end)
	if s.memory > 0 && stage.ParamKiB+stage.StateKiB+int64(inFlight)*stage.ActivationKiB > s.memory {
		return unit.Forever
	}
	return stage.Forward + stage.Input + stage.Weight
}

// Both is the time in which what a stage hands on, and what comes back, pass a link.
func (s *Sums) Both(layer int, link Link) unit.Duration {
	return 2 * link.Takes(s.to[layer].OutputKiB)
}

// Chain is the layers of a shape, to be cut into stages of which each rank holds one, with what
// its sequence keeps in flight in the memory of its devices. Links cost nothing. Where ranks hold
// several stages, what fits is for the simulation to say.
func (x *Simulator) Chain(s *Shape) (*pipeline.Chain, Why) {
	order, why := s.Sequence.Order.Schedule(s.Ranks, s.Microbatches, nil)
	if why != "" {
		return nil, why
	}
	inFlight := order.InFlight()
	if len(inFlight) != s.Ranks {
		clear(inFlight)
	}
	plan := s.Plan()
	ranks := make([]Rank, s.Ranks)
	for r := range ranks {
		ranks[r] = plan.group(0, r)
	}
	sums := make([]*Sums, len(ranks))
	for r := range ranks {
		like := slices.IndexFunc(ranks, func(other Rank) bool { return x.On.Alike(other.Devices, ranks[r].Devices) })
		if sums[r] = sums[like]; sums[r] != nil {
			continue
		}
		if sums[r], why = x.Sums(&ranks[r], s.Samples, s.Copies, s.Ways); why != "" {
			return nil, why
		}
	}
	return &pipeline.Chain{Layers: x.Model.Profile.Layers(), Link: func(_, _, _ int) unit.Duration { return 0 },
		Stage: func(stage, first, end int) unit.Duration {
			return sums[order.Routes[0][stage]].Takes(first, end, inFlight[stage])
		}}, ""
}
