// Package pipeline is step 4: which layer runs on which device, and which
// microbatch when. It declares what a strategy of this step decides, joins a cut
// and an order into a plan, and predicts the plan's iteration by running it as a
// task graph. Without a strategy a job keeps the user's fixed configuration: an
// equal cut, run as GPipe runs it.
package pipeline

import (
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Live says how plans come true with real processes.
const Live = "MUSTER_PLAN names the plan when a run starts, and the trainer executes it; on Kubernetes no job declares stages"

// LiveCopies says why plans stay in the simulator that keep a stage in several processes, or
// several versions of its weights.
const LiveCopies = "cannot, because " + NoCopies

// NoCopies is what the trainer lacks for that.
const NoCopies = "the trainer has each stage in one process, and one version of its weights"

// CutPart says which layers each device gets.
var CutPart = strategy.NewPart[Partitioner](strategy.Part{Name: "cut", Rank: 80, Step: "pipeline", Null: "equal-layers", Default: "equal-layers"})

// Partitioner cuts a chain of layers into consecutive stages.
type Partitioner interface {
	// Cut returns the first layer of each stage but the first, ascending, or why
	// there is no cut. Of p the speeds, what is in flight and the memory are those of the stages.
	Cut(layers []workload.Layer, stages int, p Params) ([]int32, Why)
}

// SequencePart says which microbatch is next.
var SequencePart = strategy.NewPart[Ordering](strategy.Part{Name: "sequence", Rank: 90, Step: "pipeline", Null: "gpipe", Default: "gpipe"})

// Ordering says how many stages there are, where they stand, and in which order each
// rank works on its microbatches.
type Ordering interface {
	// Schedule returns a schedule for so many ranks and microbatches, or why there is
	// none. It is asked twice: first without costs, for the stages that it wants and what
	// they keep, on which the cut depends; then with the costs of the cut, when it may
	// change the orders, and which of a stage's ranks a microbatch meets. One whose pipeline
	// is not empty between two iterations returns several of them, and so a multiple of the
	// microbatches.
	Schedule(ranks, microbatches int, c *Costs) (Schedule, Why)
}

// Fixed is an Ordering that may go by no costs.
type Fixed interface {
	Ordering
	// Fixed reports whether Schedule returns the same with costs as without, so that whoever has
	// it once need not ask again.
	Fixed() bool
}

// Why says to a user why there is no plan; empty means that there is one.
type Why string

// Params is what a plan runs on.
type Params struct {
	// Bandwidth and Latency are those of the link between two ranks, in
	// each direction; zero Bandwidth is unlimited.
	Bandwidth unit.Mbps
	Latency   unit.Duration
	// Links, where there are any, are those from rank to rank, in place of Bandwidth and Latency.
	Links [][]Link
	// Speeds are the devices relative to the profiled one; none means 1.
	Speeds []float64
	// Memory is what each device has; 0 is unlimited.
	Memory unit.MiB
	// ParamCopies is how many times a device holds its parameters: 4 for weights,
	// gradients and the two moments of Adam.
	ParamCopies int64
	// Together is how long two passes take that run at once, as a part of what they take one
	// after the other, but never less than the longer one; 0 is as long as that.
	Together float64
	// InFlight is, per stage, the most microbatches whose activations it keeps at
	// once. Build fills it in from the order; none means 1.
	InFlight []int32
}

// Plan is what a trainer executes, and what is predicted of it. Its JSON is the
// executed part only.
type Plan struct {
	Stages       int32 `json:"stages"`
	Microbatches int32 `json:"microbatches"`
	// Iterations is of how many iterations the microbatches are, where the pipeline is not
	// empty between two; 0 is one.
	Iterations int32 `json:"iterations,omitempty"`
	// Cuts holds the first layer of each stage but the first.
	Cuts []int32 `json:"cuts"`
	// Routes are those of the schedule, and none where stage s stands on rank s.
	Routes [][]int32 `json:"routes,omitempty"`
	// Orders holds what each rank does, in order.
	Orders [][]Op `json:"orders"`
	// Wave is that of the schedule.
	Wave int32 `json:"wave,omitempty"`
	// Tensor is over how many workers each layer is sliced, so that a rank is as many; 0 is 1.
	Tensor int32 `json:"tensor,omitempty"`

	// Iteration is the predicted time from the first pass to the last, by iteration.
	Iteration unit.Duration `json:"-"`
	// PeakKiB is the predicted memory per rank: parameters and kept activations.
	PeakKiB []int64 `json:"-"`
	// Bubble is the part of the devices' time that is idle, 0..1.
	Bubble float64 `json:"-"`
	// Spare is what it leaves of the devices.
	Spare workload.Spare `json:"-"`
}

// Schedule is the plan without its cuts.
func (p *Plan) Schedule() Schedule {
	s := Schedule{Microbatches: p.Microbatches, Routes: p.Routes, Orders: p.Orders, Wave: p.Wave}
	if s.Routes == nil {
		s.Routes = [][]int32{Straight(int(p.Stages))}
	}
	return s
}

// Build makes and predicts the plan of a job that asks for one. The job's stages are the
// ranks over which its layers are spread; an order may cut finer and give a rank several.
func Build(part Partitioner, ord Ordering, job workload.Pipeline, p Params) (Plan, Why) {
	ranks, m := int(job.Stages), int(job.Microbatches)
	if why := p.Check(job.Layers, ranks, ranks); why != "" {
		return Plan{}, why
	}
	if why := Sized(int64(ranks), int64(m)); why != "" {
		return Plan{}, why
	}
	shape, why := ord.Schedule(ranks, m, nil)
	if why != "" {
		return Plan{}, why
	}
	cuts, why := part.Cut(job.Layers, shape.Stages(), p.PerStage(&shape))
	if why != "" {
		return Plan{}, why
	}
	plan := Plan{Stages: int32(shape.Stages()), Microbatches: shape.Microbatches, Cuts: cuts, Tensor: job.Tensor}
	if shape.Microbatches != job.Microbatches {
		plan.Iterations = shape.Microbatches / job.Microbatches
	}
	schedule, why := ord.Schedule(ranks, m, &Costs{Stages: stages(job.Layers, cuts), Params: p})
	if why != "" {
		return Plan{}, why
	}
	if plan.Orders, plan.Wave = schedule.Orders, schedule.Wave; !slices.Equal(schedule.Routes[0], Straight(ranks)) || len(schedule.Routes) > 1 {
		plan.Routes = schedule.Routes
	}
	return Simulate(job.Layers, plan, p)
}

// PerStage are the parameters as the stages of a schedule see them: a device that holds
// several gives each an equal part of its memory.
func (p Params) PerStage(s *Schedule) Params {
	stages := s.Stages()
	p.InFlight = s.InFlight()
	if len(p.Speeds) > 0 {
		speeds := make([]float64, stages)
		for stage := range speeds {
			speeds[stage] = math.Inf(1)
			for _, route := range s.Routes { // where it stands on several, the slowest counts
				speeds[stage] = min(speeds[stage], p.Speeds[route[stage]])
			}
		}
		p.Speeds = speeds
	}
	if p.Links != nil {
		p.Links = s.perStage(p.Links)
	}
	most := 1
	for r := range s.Orders {
		most = max(most, len(s.holds(r)))
	}
	p.Memory /= unit.MiB(most)
	return p
}

// perStage are the links from a stage to the next and back as its ranks have them: where a stage
// stands on several, the slowest counts, and inside a rank there is none.
func (s *Schedule) perStage(links [][]Link) [][]Link {
	stages := s.Stages()
	all := make([][]Link, stages)
	for from := range all {
		all[from] = make([]Link, stages)
		for _, to := range []int{from - 1, from + 1} {
			for _, route := range s.Routes {
				if to < 0 || to >= stages || route[from] == route[to] {
					continue
				}
				l, most := links[route[from]][route[to]], &all[from][to]
				most.Latency = max(most.Latency, l.Latency)
				if l.Bandwidth > 0 && (most.Bandwidth == 0 || l.Bandwidth < most.Bandwidth) {
					most.Bandwidth = l.Bandwidth
				}
			}
		}
	}
	return all
}

// InFlight counts the activations that each stage keeps at most, on the rank where it keeps
// most: that depends on nothing else than the rank's order.
func (s *Schedule) InFlight() []int32 {
	most := make([]int32, s.Stages())
	for _, ops := range s.Orders {
		held := make([]int32, s.Stages())
		for _, op := range ops {
			switch op.Kind {
			case Forward, FirstHalf:
				held[op.Stage]++
			case Backward, Weight:
				held[op.Stage]--
			}
			most[op.Stage] = max(most[op.Stage], held[op.Stage])
		}
	}
	return most
}

// Check says what makes it impossible to cut these layers into so many stages on so many ranks.
// Partitioners ask it first.
func (p *Params) Check(layers []workload.Layer, stages, ranks int) Why {
	switch {
	case stages < 1 || stages > len(layers):
		return whyf("%d stages for %d layers: expected 1 to %d", stages, len(layers), len(layers))
	case len(p.Speeds) != 0 && len(p.Speeds) != ranks:
		return whyf("%d device speeds for %d stages: expected one per stage or none", len(p.Speeds), ranks)
	case len(p.Links) != 0 && len(p.Links) != ranks:
		return whyf("the links of %d ranks for %d stages: expected those of one per stage or none", len(p.Links), stages)
	case len(p.InFlight) != 0 && len(p.InFlight) != stages:
		return whyf("%d activation counts for %d stages: expected one per stage or none", len(p.InFlight), stages)
	case p.Bandwidth < 0 || p.Latency < 0 || p.Memory < 0 || p.ParamCopies < 0 || p.ParamCopies > mostCopies || !(p.Together >= 0 && p.Together <= 1):
		return whyf("bandwidth %d, latency %d, memory %d, parameter copies %d and two passes together %g: expected nothing negative, at most %d copies and 1",
			int64(p.Bandwidth), int64(p.Latency), int64(p.Memory), p.ParamCopies, p.Together, mostCopies)
	}
	for s, speed := range p.Speeds {
		if !(speed >= slowest && speed <= 1/slowest) {
			return whyf("speed %g of stage %d: expected %g to %g", speed, s, slowest, 1/slowest)
		}
	}
	for i, l := range layers {
		if l.Forward < 0 || l.Backward < 0 || l.Forward > longest || l.Backward > longest {
			return whyf("layer %d (%s): forward %d and backward %d microseconds: expected 0 to an hour", i, l.Name, int64(l.Forward), int64(l.Backward))
		}
		if least, most := min(l.ParamKiB, l.OutputKiB, l.ActivationKiB), max(l.ParamKiB, l.OutputKiB, l.ActivationKiB); least < 0 || most > largestKiB {
			return whyf("layer %d (%s): sizes %d, %d and %d KiB: expected 0 to %d", i, l.Name, l.ParamKiB, l.OutputKiB, l.ActivationKiB, int64(largestKiB))
		}
	}
	return ""
}

// What a profile may say of one layer and of one device: more is a mistake, and
// sums within these bounds stay far from overflow.
const (
	slowest    = 1e-3
	longest    = unit.Hour
	largestKiB = 1 << 30
	mostCopies = 1000
)

// Unlike are speeds relative to the slowest, and none where all are alike: a plan for like
// devices is one for all their kinds.
func Unlike(speeds []float64) []float64 {
	if len(speeds) == 0 || slices.Min(speeds) == slices.Max(speeds) || slices.Min(speeds) <= 0 {
		return nil
	}
	relative, least := slices.Clone(speeds), slices.Min(speeds)
	for i := range relative {
		relative[i] /= least
	}
	return relative
}

// Compute is the time of a pass of profiled length d on a device.
func (p *Params) Compute(d unit.Duration, device int) unit.Duration {
	if len(p.Speeds) == 0 {
		return d
	}
	return unit.Duration(math.Round(float64(d) / p.Speeds[device]))
}

// Transfer is the time kib of activations occupy the link between two stages.
func (p *Params) Transfer(kib int64) unit.Duration {
	return Link{Bandwidth: p.Bandwidth}.Takes(kib)
}

// PeakKiB is the memory a stage needs for its parameters and the activations of
// one microbatch, times what it keeps of each.
func (p *Params) PeakKiB(paramKiB, activationKiB int64, stage int) int64 {
	kept := int64(1)
	if len(p.InFlight) != 0 {
		kept = int64(p.InFlight[stage])
	}
	return p.ParamCopies*paramKiB + kept*activationKiB
}

func whyf(format string, args ...any) Why { return Why(fmt.Sprintf(format, args...)) }
