package room

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// takeBack makes room for a job from runs that have a weaker claim on it: those that
// hold what the job's queue is guaranteed and others have borrowed, those of lower
// priority where the tree of queues lets priority preempt, and those that a joint decider
// wishes away. Nobody is stopped unless the job starts in the room; elastic runs go on at
// once with fewer workers where that leaves room enough.
func (m *Maker) takeBack(d *plan.Draft, w *allocate.Wish, n int32) bool {
	m.yielding.forget()
	m.weaker(d.View, w.Job, d.Shape(w.Job).Milli(n), m.yielding.add)
	return m.takeFrom(d, w, n)
}

// takeFrom makes room for a job from the candidates that the victims part chooses.
func (m *Maker) takeFrom(d *plan.Draft, w *allocate.Wish, n int32) bool {
	shape := d.Shape(w.Job)
	if len(m.yielding.candidates) == 0 || m.round != nil && !m.wouldDo(d, w, n) {
		return false
	}
	in := victims.Input{View: d.View, Need: allocate.Need{Job: w.Job, Attempt: d.Job(w.Job).Attempt, Workers: n, Shape: shape}, Candidates: m.yielding.candidates}
	chosen, ok := m.Chooser.Choose(in, func(chosen []int) bool {
		mark := d.Mark()
		if !m.yielding.giveWay(d, w, n, chosen) {
			return false
		}
		pays := m.yielding.pays(d, w.Job)
		m.yielding.undo(d, mark, m.yielding.gave)
		if !pays {
			m.Retry = min(m.Retry, m.yielding.savesAt(d.View))
		}
		return pays
	})
	if !ok {
		if m.round != nil {
			m.failed = append(m.failed, m.attempt(d, w.Job, n))
		}
		return false
	}
	if !m.yielding.giveWay(d, w, n, chosen) {
		panic("room: a placement that was made cannot be made again")
	}
	m.yielding.gaveWay(d, w.Job)
	return true
}

// wouldDo reports whether all candidates together could leave a wish room and its queue
// enough of what it may hold; a joint decider may wish for much that cannot be.
func (m *Maker) wouldDo(d *plan.Draft, w *allocate.Wish, n int32) bool {
	if slices.Contains(m.failed, m.attempt(d, w.Job, n)) {
		return false
	}
	shape := d.Shape(w.Job)
	room := d.Room().FreeMilli(shape.Models)
	for i := range m.yielding.candidates {
		job := m.yielding.candidates[i].Job
		d.GrantsOf(m.yielding.candidates[i].Run, func(g plan.Grant) {
			if g.Device != plan.None {
				room += int64(g.Reserve)
			}
		})
		m.claims.Count(job, -1)
	}
	models, _ := d.MayTake(&m.claims.Ledger, w.Job, shape.Models, shape.Milli(n))
	for i := range m.yielding.candidates {
		m.claims.Count(m.yielding.candidates[i].Job, 1)
	}
	return models != 0 && room >= shape.Milli(n)
}

func (m *Maker) attempt(d *plan.Draft, job plan.JobID, n int32) attempt {
	j := d.Job(job)
	return attempt{m.claims.LeafOf(d.View, &j), j.Shape, j.Priority, n, len(d.Changes())}
}

// attempt is a way in which room could not be made: no other job of the same queue, shape
// and priority can have it made either until the draft changes.
type attempt struct {
	leaf, shape, priority, workers int32
	changes                        int
}
