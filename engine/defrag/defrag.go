// Package defrag plans moves of running jobs that make room for a waiting gang, where
// there is as much free as it needs, but not together where it could use it. A move is a
// stop with time to save and a start elsewhere, at the same size and on the same device
// model, so that what every queue holds stays what it was. A plan changes nothing; the
// engine carries out all of it or nothing (engine.Arranged).
//
// Which runs go is the question that preemption asks, with one condition more: all of
// them must fit again. So the choice is that of package victims (the least work lost,
// then the fewest runs), with a try that places the gang and then everybody else.
package defrag

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Budget bounds a plan.
type Budget struct {
	// Moves is the most runs that are moved.
	Moves int
	// Price is the most that they cost together, in device-microseconds; 0 is no bound.
	Price int64
}

// DefaultBudget is that of somebody who says nothing.
func DefaultBudget() Budget { return Budget{Moves: 10} }

// Planner plans. Its placer is that of the strategy that decides, or the gang would be
// put where its scheduler would not have put it.
type Planner struct {
	Placer allocate.Placer
	Budget Budget
	// Settle gives the settings of the gang's run; nil leaves the default ones.
	Settle func(v plan.View, job plan.JobID) (plan.Terms, *plan.Pipeline)
}

// Sequence is a plan: moves in an order in which each is possible once those before it
// are done, and the start that they make possible.
type Sequence struct {
	Job    plan.JobID
	Start  engine.Move
	Moves  []Move
	Price  int64      // device-microseconds of all moves
	Before []NodeView // the nodes on which anything changes
	After  []NodeView
	// Why is in words what is planned, or why nothing is.
	Why string
}

// Move is one run that goes elsewhere.
type Move struct {
	engine.Move
	Run     plan.RunID
	From    []engine.Place
	Devices int64 // thousandths of devices it holds
	Price   int64 // device-microseconds
}

// NodeView is who is on the devices of a node, by job; a device may be shared.
type NodeView struct {
	Node    plan.NodeID
	Devices [][]plan.JobID
}

// Event is what makes the engine carry the plan out.
func (s *Sequence) Event() engine.Event {
	ev := engine.Event{Kind: engine.Arranged, Job: s.Job, Moves: []engine.Move{s.Start}}
	for i := range s.Moves {
		ev.Moves = append(ev.Moves, s.Moves[i].Move)
	}
	return ev
}

// Plan finds the moves of the least price after which a waiting job fits, at its
// smallest size. The state is left as it was; it must not be one that an engine goes on
// to use meanwhile. Where there are none, the sequence says why.
func (p *Planner) Plan(s *plan.State, job plan.JobID) (Sequence, bool) {
	x, why := p.search(s, job)
	if why != "" {
		return Sequence{Job: job, Why: why}, false
	}
	x.d = s.Edit()
	defer x.d.Discard()
	x.open()
	all := x.movable()
	chosen, ok := x.choose(all)
	if !ok {
		// The choice goes by the room that is made. Where little is free elsewhere, it may
		// find a way among those alone that have a place to go to as things are.
		chosen, ok = x.choose(x.placeable(all))
	}
	if !ok {
		return Sequence{Job: job, Why: x.none(len(all))}, false
	}
	return x.sequence(chosen), true
}

// Any plans for the best-ranked job that waits for nothing but room in one piece, or
// else for the first waiting one that there is a plan for.
func (p *Planner) Any(s *plan.State, order schedule.Order) (Sequence, bool) {
	for _, job := range ranked(s.View(), order) {
		if found, ok := p.Plan(s, job); ok && len(found.Moves) > 0 {
			return found, true
		}
	}
	return Sequence{Job: plan.None, Why: "no waiting job would start if others were moved"}, false
}

// mostTried is for how many kinds of job a plan is looked for.
const mostTried = 32

// ranked lists waiting jobs, those that wait for room in one piece first, then by rank.
// Of those that ask for the same only the first is listed: if it cannot be placed, none
// can.
func ranked(v plan.View, order schedule.Order) []plan.JobID {
	type candidate struct {
		job   plan.JobID
		other int // 0: fragmentation keeps it
		key   schedule.Key
	}
	var list []candidate
	for id := range plan.JobID(v.Jobs()) {
		j := v.Job(id)
		if j.Phase != plan.Waiting || !j.Admitted {
			continue
		}
		c := candidate{job: id, other: 1}
		if j.Reason.Code == plan.Fragmented {
			c.other = 0
		}
		c.key, _ = order.Key(v, id)
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.other, b.other), a.key.Compare(a.job, b.key, b.job))
	})
	type kind struct{ shape, tenant, user int32 }
	seen := map[kind]bool{}
	var jobs []plan.JobID
	for _, c := range list {
		j := v.Job(c.job)
		if k := (kind{j.Shape, j.Tenant, j.User}); !seen[k] && len(jobs) < mostTried {
			seen[k] = true
			jobs = append(jobs, c.job)
		}
	}
	return jobs
}
