package world

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Midway says how far a run has come that this world has not seen begin.
type Midway struct {
	Began  unit.Time
	Since  unit.Time     // until then its progress is told by Began and Rested
	Rested unit.Duration // time spent suspended up to Since
	Paused bool          // it makes no progress from Since on
}

// Resume puts runs into the world that began before it. How fast they went so far
// follows from their present placement and company: what a State remembers of a run
// is how long it ran, not beside whom.
func (w *World) Resume(v plan.View, runs []plan.RunID, midway []Midway) {
	for i, id := range runs {
		w.place(midway[i].Began, v, id)
		w.runs[id].paused = midway[i].Paused
	}
	w.round++
	settled := w.round // every component is looked at once, however often it is met
	for _, id := range runs {
		if w.mark[id] >= settled {
			continue
		}
		component := w.component(id)
		for k, rate := range w.slowed(component) {
			w.runs[component[k]].rate = rate
		}
	}
	for i, id := range runs {
		w.runs[id].catchUp(midway[i])
	}
	for i, id := range runs {
		w.setPace(midway[i].Since, id) // what it kept busy before is in other books
		w.tell(midway[i].Since, id)
	}
}

// catchUp gives a run the progress that it has made. One that computes without a
// pause is left as of its beginning, so that it ends to the microsecond when it would
// have.
func (x *run) catchUp(m Midway) {
	x.rested = m.Rested
	if !x.paused {
		x.updated = x.began.Add(m.Rested)
		return
	}
	x.updated = m.Since
	x.done = float64(m.Since.Sub(m.Began)-m.Rested) * x.rate
}

// Stopped tells the world of a run that was told to stop before the world began, and
// returns what of it is kept. It takes no part in the world any more.
func (w *World) Stopped(v plan.View, id plan.RunID, m Midway, saved bool) Ending {
	w.place(m.Began, v, id)
	x := &w.runs[id]
	x.rate = x.solo
	x.catchUp(m)
	e, _ := w.End(m.Since, v, id, saved)
	return e
}
