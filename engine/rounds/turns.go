package rounds

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/room"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// HandOver lets a job begin its turn: those that are wished suspended on its devices are,
// if it can.
func (r *Round) HandOver(d *plan.Draft, w *allocate.Wish, begins func() bool) bool {
	mark := d.Mark()
	if len(r.turns) > 0 {
		r.endTurns(d, w)
	}
	if !begins() {
		d.Rollback(mark)
		return false
	}
	return true
}

// endTurns suspends those that are wished so on the devices of a wish.
func (r *Round) endTurns(d *plan.Draft, w *allocate.Wish) {
	var on []plan.DeviceID
	if run := d.RunOf(w.Job); run != plan.None {
		d.GrantsOf(run, func(g plan.Grant) { on = append(on, g.Device) })
	}
	for i := range w.Slots {
		on = append(append(on, w.Slots[i].On...), w.Slots[i].Device)
	}
	for _, other := range r.turns {
		run, meet := d.RunOf(other), false
		if run == plan.None {
			continue
		} else if status, _ := d.Works(run); status != plan.Running {
			continue
		}
		d.GrantsOf(run, func(g plan.Grant) { meet = meet || g.Device != plan.None && slices.Contains(on, g.Device) })
		if meet {
			d.Suspend(run, r.of(other).Reason)
		}
	}
}

var _ room.Round = (*Round)(nil)

// Turn is how long jobs run at least that take turns by design.
func (r *Round) Turn() unit.Duration { return r.ended.turn }

// Between reports whether only starts are carried out.
func (r *Round) Between() bool { return r.between }

// Yields are runs that go on until others need their room.
func (r *Round) Yields() []plan.JobID { return r.yields }

// GoesFrom is when a run has computed for long enough to be worth having been started: a minute, ten times what its
// stop costs, and what its start cost others.
func (r *Round) GoesFrom(v plan.View, id plan.RunID) unit.Time {
	return max(r.ended.endsFrom(v, id), v.Run(id).Began.Add(max(unit.Minute, leastSlice*r.placing.Price(v, v.JobOf(id)))))
}

// Unlawful lists those whose runs were ended against the law, and who therefore stay.
func (r *Round) Unlawful(d *plan.Draft, changes []plan.Change) []plan.JobID {
	stay, again := r.ended.unlawful(d, changes, r.room.Loops)
	r.again = min(r.again, again)
	return stay
}

// Remember notes who displaced whom in a lawful decision.
func (r *Round) Remember(d *plan.Draft, changes []plan.Change) {
	r.ended.remember(d, changes, r.room.Loops)
}
