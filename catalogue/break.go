package catalogue

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
)

// broken is a part with its deciding method taken away: what a claim must notice. An order
// ranks the other way round, a placer takes the first room there is, a joint decider
// wishes for everybody what he asked for as he came, a rater takes the last candidate, nobody shares
// or reserves, a gate admits all, a pipeline is cut and goes as without a strategy, nobody reacts to what breaks or drifts, and the traffic of runs
// and the price of a switch are left alone. All
// else that the part could do is gone with it.
func broken(part any) any {
	switch p := part.(type) {
	case allocate.Joint:
		return firstCome{}
	case allocate.Sharer:
		return alone{}
	case calendar.Policy:
		return null(calendar.ReservePart)
	case schedule.Order:
		return reversed{p}
	case allocate.Placer:
		plain := null(allocate.PlacePart).(allocate.Placer)
		if picky, ok := strategy.Can[allocate.Picky](p); ok {
			return picked{plain, picky}
		}
		return plain
	case allocate.Rater:
		return last{}
	case flow.Policy:
		return null(flow.PolicyPart)
	case schedule.Gate:
		return open{}
	case allocate.Switcher:
		return free{}
	case pipeline.Partitioner:
		return null(pipeline.CutPart)
	case pipeline.Ordering:
		return null(pipeline.SequencePart)
	case parallel.Planner:
		return equally{}
	case reaction.Policy:
		return null(reaction.Part)
	}
	return part
}

// null is the strategy without which a part would be empty.
func null(part *strategy.Part) any {
	e, _ := Find(part.Null)
	return e.make(nil, Env{})
}

// equally is a planner whose stages have as many layers each.
type equally struct{}

// Plans are on the grid.
func (equally) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	g := parallel.Grid{Sequences: l.Sequences, Cut: null(pipeline.CutPart).(pipeline.Partitioner)}
	return g.Search(x, l)
}

// reversed is an order whose first comes last.
type reversed struct{ of schedule.Order }

// Key is the other way round.
func (r reversed) Key(v plan.View, job plan.JobID) (schedule.Key, unit.Time) {
	key, until := r.of.Key(v, job)
	for i := range key {
		key[i] = -key[i]
	}
	return key, until
}

// Rules are the order's own.
func (r reversed) Rules() schedule.Rules { return r.of.Rules() }

// picked places what another would, wherever there is room.
type picked struct {
	allocate.Placer
	allocate.Picky
}

// firstCome is a joint decider that decides nothing.
type firstCome struct{}

// Wishes are what jobs asked for, in the order in which they came.
func (firstCome) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	for _, id := range jobs {
		into = append(into, allocate.Wish{Job: id, Workers: v.Shape(id).Gang, Reason: plan.Reason{Code: plan.Fits}})
	}
	return into, unit.Never
}

type last struct{}

// Rate takes the last.
func (last) Rate(_ plan.View, _ allocate.Need, found []allocate.Candidate) int {
	return len(found) - 1
}

type open struct{}

// Admit admits.
func (open) Admit(plan.View, plan.JobID) (bool, plan.Reason) { return true, plan.Reason{} }

type free struct{}

// Switch costs nothing.
func (free) Switch(plan.View, plan.JobID, plan.JobID) unit.Duration { return 0 }

// alone is a sharer who finds no place beside anybody.
type alone struct{}

var _ allocate.Sharer = alone{}

// Sees forgets what it sees.
func (alone) Sees(plan.View, plan.JobID, unit.Milli) {}

// Beside is nowhere.
func (alone) Beside(_ plan.View, _ allocate.Need, into []allocate.Candidate) []allocate.Candidate {
	return into
}

// Moves is never.
func (alone) Moves(plan.View, plan.JobID) bool { return false }

// Unwelcome is nobody.
func (alone) Unwelcome(plan.View, []plan.JobID) ([]allocate.Guest, bool) { return nil, false }
