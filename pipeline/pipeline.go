// Package pipeline is step 4: which layer runs on which device, and which
// microbatch when. It declares what a strategy of this step decides, joins a cut
// and an order into a plan, and predicts the plan's iteration by running it as a
// task graph. Without a strategy a job keeps the user's fixed configuration: an
// equal cut, run as GPipe runs it.
package pipeline

import (
	"fmt"
	"math"
	"strconv"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Live says how plans come true with real processes.
const Live = "MUSTER_PLAN names the plan when a run starts, and the trainer executes it; on Kubernetes no job declares stages"

// CutPart says which layers each device gets.
var CutPart = strategy.NewPart[Partitioner](strategy.Part{Name: "cut", Rank: 80, Step: "pipeline", Null: "equal-layers", Default: "equal-layers"})

// Partitioner cuts a chain of layers into consecutive stages, one per device.
type Partitioner interface {
	// Cut returns the first layer of each stage but the first, ascending, or why
	// there is no cut.
	Cut(layers []workload.Layer, stages int, p Params) ([]int32, Why)
}

// SequencePart says which microbatch is next.
var SequencePart = strategy.NewPart[Ordering](strategy.Part{Name: "sequence", Rank: 90, Step: "pipeline", Null: "gpipe", Default: "gpipe"})

// Ordering says in which order each stage works on its microbatches.
type Ordering interface {
	// Order returns for each stage every microbatch's forward and backward pass.
	Order(stages, microbatches int) [][]Op
}

// OneForwardOneBackward is the order that everybody runs today, as in package onefoneb:
// each stage is ahead by the number of stages behind it.
func OneForwardOneBackward(stages, microbatches int) [][]Op {
	orders := make([][]Op, stages)
	for s := range orders {
		ahead := min(stages-1-s, microbatches)
		for k := range microbatches + ahead {
			if k < microbatches {
				orders[s] = append(orders[s], Op{Kind: Forward, Micro: int32(k)})
			}
			if k >= ahead {
				orders[s] = append(orders[s], Op{Kind: Backward, Micro: int32(k - ahead)})
			}
		}
	}
	return orders
}

// Why says to a user why there is no plan; empty means that there is one.
type Why string

// Params is what a plan runs on.
type Params struct {
	// Bandwidth and Latency are those of the link between neighbouring stages, in
	// each direction; zero Bandwidth is unlimited.
	Bandwidth unit.Mbps
	Latency   unit.Duration
	// Speeds are the stages' devices relative to the profiled one; none means 1.
	Speeds []float64
	// Memory is what each device has; 0 is unlimited.
	Memory unit.MiB
	// ParamCopies is how many times a device holds its parameters: 4 for weights,
	// gradients and the two moments of Adam.
	ParamCopies int64
	// InFlight is, per stage, the most microbatches whose activations it keeps at
	// once. Build fills it in from the order; none means 1.
	InFlight []int32
}

// Op is one pass of one microbatch through a stage.
type Op struct {
	Kind  Kind
	Micro int32
}

// Kind is the kind of pass, by its letter.
type Kind byte

// The kinds of pass.
const (
	Forward  Kind = 'F'
	Backward Kind = 'B'
)

// String writes an operation the way plans are exchanged: "F0", "B12".
func (o Op) String() string { return string(o.Kind) + strconv.Itoa(int(o.Micro)) }

// MarshalText makes an operation a JSON string.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (o *Op) UnmarshalText(text []byte) error {
	if len(text) < 2 || Kind(text[0]) != Forward && Kind(text[0]) != Backward {
		return fmt.Errorf("operation %q: expected F or B and a microbatch, such as F0", text)
	}
	micro, err := strconv.ParseUint(string(text[1:]), 10, 31)
	if err != nil {
		return fmt.Errorf("operation %q: expected a microbatch number after %c", text, text[0])
	}
	*o = Op{Kind(text[0]), int32(micro)}
	return nil
}

// Plan is what a trainer executes, and what is predicted of it. Its JSON is the
// executed part only.
type Plan struct {
	Stages       int32 `json:"stages"`
	Microbatches int32 `json:"microbatches"`
	// Cuts holds the first layer of each stage but the first.
	Cuts []int32 `json:"cuts"`
	// Orders holds what each stage does, in order.
	Orders [][]Op `json:"orders"`

	// Iteration is the predicted time from the first pass to the last.
	Iteration unit.Duration `json:"-"`
	// PeakKiB is the predicted memory per stage: parameters and kept activations.
	PeakKiB []int64 `json:"-"`
	// Bubble is the part of the devices' time that is idle, 0..1.
	Bubble float64 `json:"-"`
}

// mostPasses bounds the size of a plan, so that a mistyped microbatch count is
// answered and not simulated.
const mostPasses = 1 << 18

// Build makes and predicts the plan of a job that asks for one.
func Build(part Partitioner, ord Ordering, job workload.Pipeline, p Params) (Plan, Why) {
	if why := p.Check(job.Layers, int(job.Stages)); why != "" {
		return Plan{}, why
	}
	if m := int64(job.Microbatches); m < 1 || m*int64(job.Stages) > mostPasses {
		return Plan{}, whyf("%d microbatches in %d stages: expected at least 1 and no more than %d in all stages together",
			m, job.Stages, mostPasses)
	}
	plan := Plan{Stages: job.Stages, Microbatches: job.Microbatches, Orders: ord.Order(int(job.Stages), int(job.Microbatches))}
	p.InFlight = inFlight(plan.Orders)
	var why Why
	if plan.Cuts, why = part.Cut(job.Layers, int(job.Stages), p); why != "" {
		return Plan{}, why
	}
	return Simulate(job.Layers, plan, p)
}

// inFlight counts the activations each stage keeps at most: its memory depends
// on nothing else than its own order.
func inFlight(orders [][]Op) []int32 {
	most := make([]int32, len(orders))
	for s, ops := range orders {
		held := int32(0)
		for _, op := range ops {
			if op.Kind == Forward {
				held++
			} else {
				held--
			}
			most[s] = max(most[s], held)
		}
	}
	return most
}

// Check says what makes it impossible to cut these layers into so many stages.
// Strategies ask it first.
func (p *Params) Check(layers []workload.Layer, stages int) Why {
	switch {
	case stages < 1 || stages > len(layers):
		return whyf("%d stages for %d layers: expected 1 to %d", stages, len(layers), len(layers))
	case len(p.Speeds) != 0 && len(p.Speeds) != stages:
		return whyf("%d device speeds for %d stages: expected one per stage or none", len(p.Speeds), stages)
	case len(p.InFlight) != 0 && len(p.InFlight) != stages:
		return whyf("%d activation counts for %d stages: expected one per stage or none", len(p.InFlight), stages)
	case p.Bandwidth < 0 || p.Latency < 0 || p.Memory < 0 || p.ParamCopies < 0 || p.ParamCopies > mostCopies:
		return whyf("bandwidth %d, latency %d, memory %d and parameter copies %d: expected nothing negative and at most %d copies",
			int64(p.Bandwidth), int64(p.Latency), int64(p.Memory), p.ParamCopies, mostCopies)
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

// Compute is the time of a forward or backward pass of profiled length d on a
// stage's device.
func (p *Params) Compute(d unit.Duration, stage int) unit.Duration {
	if len(p.Speeds) == 0 {
		return d
	}
	return unit.Duration(math.Round(float64(d) / p.Speeds[stage]))
}

// Transfer is the time kib of activations occupy the link between two stages.
func (p *Params) Transfer(kib int64) unit.Duration {
	if p.Bandwidth == 0 {
		return 0
	}
	// A megabit per second is a bit per microsecond.
	return unit.Duration(math.Ceil(float64(kib) * 8 * 1024 / float64(p.Bandwidth)))
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
