package room

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// displace takes room for a job from running jobs ranked below it, where the order has that: from those that the
// victims part chooses, or, where the composition names none, the lowest first, and leaves those alone that need not go
// after all.
func (m *Maker) displace(d *plan.Draft, it lines.Item, w *allocate.Wish) (took bool) {
	switch {
	case !m.parts.Rules.Preempt:
		return false
	case m.parts.Victims != nil:
		took = m.displaceChosen(d, it, w)
	default:
		took = m.displaceLowest(d, it, w)
	}
	if took {
		m.agenda.Overrule()
	}
	return took
}

// displaceLowest takes room from the lowest.
func (m *Maker) displaceLowest(d *plan.Draft, it lines.Item, w *allocate.Wish) bool {
	if low, found := m.worst(d.View); !found || !it.Before(&low) {
		return false // nobody ranks below it
	}
	mark := d.Mark()
	left, enough := m.endLowest(d, it, w)
	if !enough {
		m.yielding.undo(d, mark, m.yielding.chosen)
		return false
	}
	if !m.yielding.letStay(d, w, mark, left) {
		return false
	}
	if !m.yielding.pays(d, w.Job) {
		m.yielding.undo(d, mark, m.yielding.gave)
		m.Retry = min(m.Retry, m.yielding.savesAt(d.View))
		return false
	}
	m.yielding.gaveWay(d, w.Job)
	return true
}

// endLowest ends runs ranked below a job, the lowest first, until it has started in their room. It returns
// how much of that is left over, and whether it was enough.
func (m *Maker) endLowest(d *plan.Draft, it lines.Item, w *allocate.Wish) (left int64, enough bool) {
	y := m.yielding
	y.forget()
	shape := d.Shape(it.Job)
	// The idle part of a victim's device counts too, so this is the most there can be;
	// whether the job fits in it only the placer knows.
	need, free := shape.Milli(w.Workers), d.Room().FreeMilli(shape.Models)
	most, lost := free, int64(0) // most is with all that may end, before any of them has ended
	end := func(low lines.Item) {
		milli, may := m.mayDisplace(d.View, it.Job, low.Job, shape)
		if !may {
			return // its queue keeps it now that others of it have ended
		}
		i := len(y.chosen)
		y.chosen, y.held = append(y.chosen, i), append(y.held, milli)
		_, _, price := victims.Price(d.View, d.Job(low.Job).Run)
		y.add(victims.Candidate{Job: low.Job, Run: d.Job(low.Job).Run, Price: price}, plan.MadeWayFor)
		y.weighLoss(d.View, d.Job(low.Job).Run)
		y.endFor(d, it.Job, i)
		free, lost = free+milli, min(math.MaxInt64-price, lost)+price
		enough = free >= need && y.takesRoom(d, w, w.Workers, plan.Reason{Code: plan.TookRoomOf, A: int64(len(y.chosen)), B: lost})
	}
	m.lows = m.lows[:0]
	m.eachBelow(d.View, it, func(low lines.Item) bool {
		if milli, may := m.mayDisplace(d.View, it.Job, low.Job, shape); may {
			most += milli
			m.lows = append(m.lows, low)
		}
		if most < need {
			return true // to end them would be in vain
		}
		for i := 0; i < len(m.lows) && !enough; i++ {
			end(m.lows[i])
		}
		m.lows = m.lows[:0]
		return !enough
	})
	return free - need, enough
}

// eachBelow calls f with the running jobs ranked below one, the lowest first, until it
// returns false.
func (m *Maker) eachBelow(v plan.View, it lines.Item, f func(low lines.Item) bool) {
	m.below = m.below[:0]
	for on := true; on; {
		low, found := m.worst(v)
		if !found || !it.Before(&low) {
			break
		}
		m.lines.Unrank(low.Job)
		m.below = append(m.below, low)
		on = f(low)
	}
	for _, low := range m.below {
		m.lines.Rank(low)
	}
}

// displaceChosen lets the victims part choose among all that rank below a job.
func (m *Maker) displaceChosen(d *plan.Draft, it lines.Item, w *allocate.Wish) bool {
	shape := d.Shape(it.Job)
	y := m.yielding
	y.forget()
	m.eachBelow(d.View, it, func(low lines.Item) bool {
		if _, may := m.mayDisplace(d.View, it.Job, low.Job, shape); may {
			run := d.Job(low.Job).Run
			_, _, price := victims.Price(d.View, run)
			y.add(victims.Candidate{Job: low.Job, Run: run, Price: price, Key: low.Key}, plan.MadeWayFor)
		}
		return true
	})
	slices.SortFunc(y.candidates, func(a, b victims.Candidate) int { return int(a.Job - b.Job) })
	for i := range y.candidates {
		y.weighLoss(d.View, y.candidates[i].Run)
	}
	return m.takeFrom(d, w, w.Workers)
}

// worst returns the running job ranked last, with its rank of this moment: ranks of
// running jobs may have improved since they were filed.
func (m *Maker) worst(v plan.View) (lines.Item, bool) {
	for top, ranked := m.lines.Lowest(); ranked; top, ranked = m.lines.Lowest() {
		key, _ := m.parts.Order.Key(v, top.Job)
		if key == top.Key {
			return top, true
		}
		m.lines.Rerank(lines.Item{Key: key, Job: top.Job})
	}
	return lines.Item{}, false
}
