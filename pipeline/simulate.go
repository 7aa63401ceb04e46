package pipeline

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Simulate predicts one iteration of a plan and returns the plan with the
// prediction filled in, or why it cannot run: it is not a plan for these layers,
// its ranks wait for one another, or it does not fit the devices.
func Simulate(layers []workload.Layer, plan Plan, p Params) (Plan, Why) {
	t, why := plan.Timing(layers, p)
	if why != "" {
		return plan, why
	}
	plan.Iteration, plan.Bubble, plan.PeakKiB = t.Makespan/unit.Duration(max(1, plan.Iterations)), t.IdleShare(), make([]int64, len(t.Peak))
	plan.Spare = t.Spare()
	for r, peak := range t.Peak {
		plan.PeakKiB[r] = peak.Total()
		if limit := int64(p.Memory) << 10; limit > 0 && plan.PeakKiB[r] > limit {
			return plan, whyf("rank %d needs %v of device memory, a device has %v: more stages or fewer microbatches in flight would help",
				r, unit.MiB((plan.PeakKiB[r]+1023)>>10), p.Memory)
		}
	}
	return plan, ""
}

// Timing runs a plan's schedule on these layers through the task graph, or says why it cannot.
func (p *Plan) Timing(layers []workload.Layer, on Params) (Timing, Why) {
	on.InFlight = nil // what the order itself says is simulated
	if why := p.Check(len(layers)); why != "" {
		return Timing{}, why
	}
	if why := on.Check(layers, int(p.Stages), len(p.Orders)); why != "" {
		return Timing{}, why
	}
	schedule := p.Schedule()
	return schedule.Time(Costs{Stages: stages(layers, p.Cuts), Params: on})
}

// Check says what is wrong with a plan for so many layers: its cuts must leave
// no stage empty, and its schedule must be one for as many stages.
func (p *Plan) Check(layers int) Why {
	s := p.Schedule()
	if why := Sized(int64(p.Stages), int64(p.Microbatches)); why != "" {
		return why
	}
	if p.Iterations < 0 || p.Iterations > 1 && (p.Wave == 0 || p.Microbatches%p.Iterations != 0) {
		return whyf("%d microbatches of %d iterations, waves of %d: expected as many in each, and a wave where the pipeline is not empty between two", p.Microbatches, p.Iterations, p.Wave)
	}
	if len(p.Cuts) != int(p.Stages)-1 || s.Stages() != int(p.Stages) {
		return whyf("%d cuts and routes of %d stages for %d stages: expected %d and %d", len(p.Cuts), s.Stages(), p.Stages, p.Stages-1, p.Stages)
	}
	before := int32(0)
	for i, cut := range p.Cuts {
		if cut <= before || int(cut) >= layers {
			return whyf("cut %d is at layer %d: expected more than %d and less than %d", i, cut, before, layers)
		}
		before = cut
	}
	return s.Check()
}

// stages sums the profile over each stage; the output is that of the last layer. Of a
// backward pass that was measured as a whole, half is each half.
func stages(layers []workload.Layer, cuts []int32) []Stage {
	sum := make([]Stage, len(cuts)+1)
	s := 0
	for i, l := range layers {
		if s < len(cuts) && i == int(cuts[s]) {
			s++
		}
		sum[s].Forward += l.Forward
		sum[s].Weight += l.Backward / 2
		sum[s].Input += l.Backward - l.Backward/2
		sum[s].ParamKiB += l.ParamKiB
		sum[s].ActivationKiB += l.ActivationKiB
		sum[s].OutputKiB = l.OutputKiB
	}
	return sum
}
