package gavel

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// memory is what no State holds: the division, what everybody has got of it, and the
// round.
type memory struct {
	roundEnd unit.Time
	divided  unit.Time // when the division came; -1 is never
	booked   unit.Time // up to when time is booked
	ended    bool      // a job of the division has ended
	twin     int64     // the jobs of a division that the twin made; 0 where it is exact
	room     []int64   // that it was of
	jobs     []standing
	spare    []standing // what jobs was before, for its memory
	text     []byte     // of all this, when it was encoded last
}

// standing is one job's, by id.
type standing struct {
	job      plan.JobID
	kind     int32   // the model it has this round; None
	answered bool    // the division knew it
	x        []int64 // by model, millionths of its time
	got      []int64 // microseconds run on each since the division came
	deficit  []int64 // microseconds it lacked when earlier divisions ended

	on int32 // the model its run is on now; None. Read at every decision, not remembered
}

// find returns a job's place.
func (m *memory) find(id plan.JobID) (int, bool) {
	return slices.BinarySearchFunc(m.jobs, id, func(s standing, id plan.JobID) int { return int(s.job) - int(id) })
}

// book adds the time since the last booking to whoever is running, forgets who is gone
// and takes up who is new.
func (m *memory) book(v plan.View, jobs []plan.JobID, models int) {
	passed := int64(v.Now().Sub(m.booked))
	m.booked = v.Now()
	before, kept := m.jobs, m.spare[:0]
	for _, id := range jobs { // both are in order of id
		for len(before) > 0 && before[0].job < id {
			before, m.ended = before[1:], true
		}
		if len(before) == 0 || before[0].job != id {
			none := v.Shape(id).Milli(v.Shape(id).Gang) == 0 // of the devices that are divided
			rows := make([]int64, 3*models)
			kept = append(kept, standing{job: id, kind: plan.None, answered: none, on: modelOf(v, id),
				x: rows[:models:models], got: rows[models : 2*models : 2*models], deficit: rows[2*models:]})
			continue
		}
		s := before[0]
		before = before[1:]
		if s.on = modelOf(v, id); s.on != plan.None && int(s.on) < len(s.got) {
			if status, _ := v.Works(v.RunOf(id)); status == plan.Running {
				s.got[s.on] += passed
			}
		}
		kept = append(kept, s)
	}
	m.ended = m.ended || len(before) > 0
	m.jobs, m.spare = kept, m.jobs
}

// adopt makes a reply the division: what the last one still owed becomes deficit.
func (m *memory) adopt(now unit.Time, r *reply) {
	for i := range m.jobs {
		s := &m.jobs[i]
		for k := range s.x {
			if m.divided >= 0 {
				s.deficit[k] += int64(float64(now.Sub(m.divided))*float64(s.x[k])/micro) - s.got[k]
			}
			s.x[k], s.got[k] = 0, 0
		}
	}
	for i, id := range r.Jobs {
		if at, ok := m.find(id); ok && len(r.X[i]) == len(m.jobs[at].x) {
			m.jobs[at].x, m.jobs[at].answered = r.X[i], true
		}
	}
	m.divided, m.room, m.twin = now, r.Room, 0
	if r.Twin {
		m.twin = int64(len(r.Jobs))
	}
	m.ended = slices.ContainsFunc(r.Jobs, func(id plan.JobID) bool { _, ok := m.find(id); return !ok })
}

// Remember encodes the memory, all in whole figures.
func (m *memory) Remember() []byte {
	b := figures.PutCount(figures.Put(m.text[:0], int64(m.roundEnd), int64(m.divided), int64(m.booked), bit(m.ended)+2*m.twin), len(m.room))
	b = figures.PutCount(figures.Put(b, m.room...), len(m.jobs))
	for i := range m.jobs {
		s := &m.jobs[i]
		b = figures.PutCount(figures.Put(b, int64(s.job), int64(s.kind), bit(s.answered)), len(s.x))
		b = figures.Put(figures.Put(figures.Put(b, s.x...), s.got...), s.deficit...)
	}
	m.text = b
	return b
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Recall reads what Remember wrote.
func (m *memory) Recall(b []byte) error {
	r := figures.Read(b)
	read := memory{roundEnd: unit.Time(r.Next()), divided: unit.Time(r.Next()), booked: unit.Time(r.Next())}
	ends := r.Next()
	read.ended, read.twin = ends&1 == 1, ends>>1
	read.room = r.List(r.Count())
	for range r.Counted {
		s := standing{job: plan.JobID(r.Next()), kind: int32(r.Next()), answered: r.Next() == 1}
		n := r.Count()
		s.x, s.got, s.deficit = r.List(n), r.List(n), r.List(n)
		read.jobs = append(read.jobs, s)
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of gavel: %w", err)
	}
	*m = read
	return nil
}
