package parallel

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// PlannerPart spreads a job's layers over its devices at once, in place of a cut; the orders
// among which it chooses are those of the part beside it.
var PlannerPart = strategy.NewPart[Planner](strategy.Part{Name: "planner", Does: "spreads a model over devices", Rank: 95, Step: "pipeline", Forbids: []string{"cut"}})

// Live says what comes of a planner's plans with real processes.
const Live = "of measured layers the cut, as other plans; of jobs that name a model the run is told the plan of its offer, which the trainer executes on slots; what is computed again is left to programs on GPUs"

// LiveOrder is that of a planner that puts unlike devices in an order of its own.
const LiveOrder = "as other plans, where neighbours in the pipeline are neighbours among the workers, as like devices are; the trainer refuses another order by name"

// LiveRecovery is that of one that also goes on without lost devices.
const LiveRecovery = "of measured layers the cut, as other plans; a lost node ends the run and it starts again, because no driver changes the plan of a running job"

// Planner spreads a model over devices.
type Planner interface {
	// Plans returns what it would choose from, each simulated, none of them worse than another
	// in both time and memory, the fastest first; or why there is no plan. What fits no memory
	// is none.
	Plans(x *Simulator, l Limits) ([]Candidate, Why)
}

// Limits are what a plan has to keep to.
type Limits struct {
	Devices   int        // at most; 0 is all
	Sequences []Sequence // of which it may choose
	Samples   int        // the most of a microbatch; 0 is what the planner thinks of
	// Tensor, Ranks, Copies and Experts are the sizes that a plan has to have, where they are set.
	Tensor, Ranks, Copies, Experts int
	// Stages asks for one pipeline with a rank for each device, and keeps all activations: what
	// a run of as many workers as it has stages can carry out.
	Stages bool
}

// Allow reports whether a plan has the sizes that were asked for.
func (l *Limits) Allow(p *Plan) bool {
	first, copies := &p.Pipelines[0], 0
	for _, one := range p.Pipelines {
		copies += one.Ranks[0].Replicas
	}
	return (l.Tensor == 0 || first.Ranks[0].Tensor == l.Tensor) && (l.Ranks == 0 || len(first.Ranks) == l.Ranks) && (l.Copies == 0 || copies == l.Copies) &&
		(l.Experts == 0 || max(1, first.Ranks[0].Experts) == l.Experts)
}

// Candidate is a plan and what it takes.
type Candidate struct {
	Plan   Plan
	Result Result
}

// Candidates simulates a plan, and returns it as the only one; or why it does not fit.
func (x *Simulator) Candidates(p Plan) ([]Candidate, Why) {
	r, why := x.Simulate(&p)
	if why != "" {
		return nil, why
	}
	return []Candidate{{p, r}}, ""
}

// Pareto keeps the candidates of which none is worse than another in both time and memory, the
// fastest first.
func Pareto(all []Candidate) []Candidate {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Result.Step, b.Result.Step), cmp.Compare(a.Result.PeakKiB(), b.Result.PeakKiB()))
	})
	kept := all[:0]
	for _, c := range all {
		if len(kept) == 0 || c.Result.PeakKiB() < kept[len(kept)-1].Result.PeakKiB() {
			kept = append(kept, c)
		}
	}
	return kept
}

// Staged is a plan as a trainer executes it, or why none does. The ranks of all pipelines do the
// same. Of several pipelines, or of layers that several devices share, those of a rank follow one
// another: slices of its layers, then the same of the next pipeline. The routes say which rank
// holds which stage; one device a rank may stand in any order.
func (c *Candidate) Staged() (pipeline.Plan, Why) {
	one, part := &c.Plan.Pipelines[0], c.Result.Parts[0]
	each := len(c.Plan.Pipelines) * one.Ranks[0].Tensor
	if _, like := c.Plan.Shape(); !like && (len(c.Plan.Pipelines) > 1 || slices.ContainsFunc(one.Ranks, func(r Rank) bool { return len(r.Devices) > 1 })) {
		return pipeline.Plan{}, whyf("%v has unlike pipelines or ranks: expected like ones, each on the devices next to the last", &c.Plan)
	}
	p := pipeline.Plan{Stages: int32(part.Schedule.Stages()), Microbatches: part.Schedule.Microbatches, Cuts: one.Cuts,
		Orders: make([][]pipeline.Op, len(one.Ranks)), Wave: part.Schedule.Wave, Iteration: part.Timing.Makespan, Bubble: part.Timing.IdleShare(), Spare: part.Timing.Spare(),
		PeakKiB: make([]int64, len(one.Ranks))}
	if one.Ranks[0].Tensor > 1 {
		p.Tensor = int32(one.Ranks[0].Tensor)
	}
	for r, rank := range one.Ranks {
		at := int(rank.Devices[0]) / each
		p.Orders[at], p.PeakKiB[at] = part.Schedule.Orders[r], part.Timing.Peak[r].Total()
	}
	straight := len(part.Schedule.Routes) == 1
	for _, route := range part.Schedule.Routes {
		moved := make([]int32, len(route))
		for stage, r := range route {
			moved[stage] = one.Ranks[r].Devices[0] / int32(each)
			straight = straight && moved[stage] == int32(stage)
		}
		p.Routes = append(p.Routes, moved)
	}
	if straight {
		p.Routes = nil
	}
	return p, ""
}
