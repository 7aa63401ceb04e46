package filing

import (
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// ReopenRoomy lets the classes be tried again that the free room might now hold. Where
// the order preempts every class might, since what runs counts as room too.
func (f *Files) ReopenRoomy(v plan.View) {
	for id := range f.lines.BlockedShapes() {
		shape := v.ShapeOf(id)
		if f.placing.MayFind() || f.parts.Sharer != nil || f.parts.Rules.Preempt || shape.HasRoom(v, shape.Least()) || f.room.Scattered(v, shape) {
			f.lines.ReopenShape(id)
		} else if f.claims.CouldTakeBack(v, shape) {
			f.lines.ReopenTakers(id, f.takersOf(v, shape, false))
		}
	}
}

// ReopenTakers lets those be tried again that may take room back from what runs.
func (f *Files) ReopenTakers(v plan.View) {
	for id := range f.lines.BlockedShapes() {
		if shape := v.ShapeOf(id); f.claims.CouldTakeBack(v, shape) {
			f.lines.ReopenTakers(id, f.takersOf(v, shape, false))
		}
	}
}

// takers says who may take room back with a shape, where there are several queues: who is within a guarantee, or for
// whom priority may count.
type takers struct {
	f     *Files
	v     plan.View
	shape *plan.Shape
	milli int64 // it takes at least
	now   bool  // only those for whom what might have to be given up is enough
}

var _ lines.Takers = (*takers)(nil)

// takersOf are valid until the next are asked for.
func (f *Files) takersOf(v plan.View, shape *plan.Shape, now bool) *takers {
	f.takers = takers{f, v, shape, shape.Milli(shape.Least()), now}
	return &f.takers
}

// Turn is that of the ledger.
func (t *takers) Turn() int64 { return t.f.claims.Turn() }

// Leaf reports whether any of the jobs that are filed at a leaf may.
func (t *takers) Leaf(leaf int32) bool {
	return t.f.claims.MayEntitle(leaf, t.shape.Models, t.milli)
}

// Best reports whether the best job of a class may.
func (t *takers) Best(c *lines.Class) bool {
	return t.f.TakesBack(t.v, c) && (!t.now || t.f.claims.MayTakeBack(t.v, t.f.lines.Pass(), t.shape, c.Best().Priority))
}

// TakesBack reports whether the best job of a class may claim room from what runs: it
// is within a guarantee, or priority counts where it is.
func (f *Files) TakesBack(v plan.View, c *lines.Class) bool {
	if !f.claims.Shared() || len(c.Items()) == 0 {
		return false
	}
	shape := v.ShapeOf(c.Shape)
	return f.claims.Entitled(c.Leaf, shape.Models, shape.Milli(shape.Least()), c.Best().Priority)
}

// Crowd blocks all classes of a shape for which there is no room: nobody's job of it
// fits, unless it may take room back.
func (f *Files) Crowd(d *plan.Draft, shape int32) {
	f.lines.Crowd(shape, d.Turns(), f.takersOf(d.View, d.ShapeOf(shape), true))
}

// KeepOut blocks, untried, all classes of a shape whose best job takes at least as long as that of a class, which was just
// tried and found no room beside the claims, as they find none either: where no more claims are to be made, and nothing
// but free room is asked for.
func (f *Files) KeepOut(v plan.View, c *lines.Class) {
	shape, job := v.ShapeOf(c.Shape), c.Best().Job
	if !f.agenda.Full() || len(f.agenda.Windows()) > 0 || shape.Elastic() || f.parts.Sharer != nil || f.placing.MayFind() || f.parts.Patient || f.room.Moves() {
		return
	}
	n := shape.Least()
	length := f.agenda.Length(v, job, n)
	f.lines.KeepOut(lines.Beside{
		Class:   c,
		Steps:   f.parts.Reserve.Foresight == nil, // classes are told apart by this length, and by no other
		Shorter: func(other plan.JobID) bool { return other == job || f.agenda.Length(v, other, n) < length },
		Claims:  f.agenda.Claims(),
		Takers:  f.takersOf(v, shape, false),
	})
}

// Where nodes close soon, a job that takes less time passes those of its shape that rank before it.

// NextShorter returns the next by rank of a class that takes less time than its best job, which
// was just tried, or none: where nodes close soon it may end before. Whom nothing was held
// back from would fit no better if it were shorter.
func (f *Files) NextShorter(v plan.View, c *lines.Class, why placing.Why) plan.JobID {
	if len(f.agenda.Windows()) == 0 || f.parts.Rules.Strict || !why.Held {
		return plan.None
	}
	n, first, found := v.ShapeOf(c.Shape).Least(), lines.Item{}, false
	length := calendar.Length(v, c.Best().Job, n)
	for _, o := range c.Items()[1:] {
		if (!found || o.Before(&first)) && calendar.Length(v, o.Job, n) < length {
			first, found = o, true
		}
	}
	if !found {
		return plan.None
	}
	return first.Job
}

// PassOverUntil takes those of a class that rank before one of its jobs out of it, until nothing
// more fits: that job is tried when the queues and its rank put it next.
func (f *Files) PassOverUntil(c *lines.Class, shorter plan.JobID) {
	for shorter >= 0 && c.Best().Job != shorter {
		f.lines.PassOver(c, !f.agenda.Empty())
	}
}

// RecallPassed files those again who were passed over: they were tried, or would fit no
// better than who was.
func (f *Files) RecallPassed(v plan.View) {
	for _, it := range f.lines.RecallPassed() {
		f.File(v, it.Job)
		f.lines.Block(f.lines.ClassOf(it.Job))
	}
}
