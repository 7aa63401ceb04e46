package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// unpack ends the guests that slow a host more than who put them there lets them, and those to whom a
// new host leaves nothing: they wait for another place. The sharer judges its own guests and the placer its
// own, since whom one of them ends the other would put back at once.
func (s *Scheduler) unpack(d *plan.Draft, why *schedule.Trigger) {
	if len(s.able.watchers) == 0 || len(why.Jobs)+len(why.Observed) == 0 {
		return
	}
	changed := slices.Clone(why.Jobs)
	for i := range why.Observed {
		changed = append(changed, why.Observed[i].Job)
		s.seen(d, &why.Observed[i])
	}
	for _, w := range s.able.watchers {
		guests, opened := w.Unwelcome(d.View, changed)
		_, shares := strategy.Can[allocate.Sharer](w)
		for _, g := range guests {
			job := d.Run(g.Run).Job
			if packed := d.Job(job).Reason.Code == plan.Packed; packed != shares || s.room.Stays(job) { // who stays goes with its host
				continue
			}
			s.endGuest(d, g.Run, plan.Reason{Code: plan.Unpacked, A: int64(g.Host)})
		}
		if opened {
			s.lines.ReopenAll()
		}
	}
}

// endGuest ends a guest's run, and has its job wait.
func (s *Scheduler) endGuest(d *plan.Draft, id plan.RunID, why plan.Reason) {
	if s.round != nil {
		s.round.Stop(d, id, why)
		return
	}
	if job := d.JobOf(id); d.Stop(id, why, s.placing.Price(d.View, job)) {
		s.drop(d.View, job)
		s.file(d.View, job)
	}
}

// reopen lets those be tried again for whom there may be a place now.
func (s *Scheduler) reopen(d *plan.Draft, room bool) {
	s.claims.Age(d.View)
	if room || s.room.Retry <= d.Now() {
		s.recallAside(d)
	}
	if room {
		s.mend(d)
		s.reopenRoomy(d.View)
	}
	if s.room.Retry <= d.Now() {
		s.room.Retry = unit.Never
		s.lines.ReopenAll()
	}
	if s.claims.Wake() <= d.Now() {
		s.claims.SetWake(unit.Never)
		s.reopenTakers(d.View)
	}
	s.expire(d)
}

// reopenRoomy lets the classes be tried again that the free room might now hold. Where
// the order preempts every class might, since what runs counts as room too.
func (s *Scheduler) reopenRoomy(v plan.View) {
	for id := range s.lines.BlockedShapes() {
		shape := v.ShapeOf(id)
		if s.placing.MayFind() || s.parts.Sharer != nil || s.rules.Preempt || shape.HasRoom(v, shape.Least()) || s.room.Scattered(v, shape) {
			s.lines.ReopenShape(id)
		} else if s.claims.CouldTakeBack(v, shape) {
			s.lines.ReopenTakers(id, s.takers(v, shape, false))
		}
	}
}

// reopenTakers lets those be tried again that may take room back from what runs.
func (s *Scheduler) reopenTakers(v plan.View) {
	for id := range s.lines.BlockedShapes() {
		if shape := v.ShapeOf(id); s.claims.CouldTakeBack(v, shape) {
			s.lines.ReopenTakers(id, s.takers(v, shape, false))
		}
	}
}

// takers says who may take room back with a shape, where there are several queues: who is within a guarantee, or for
// whom priority may count.
type takers struct {
	s     *Scheduler
	v     plan.View
	shape *plan.Shape
	milli int64 // it takes at least
	now   bool  // only those for whom what might have to be given up is enough
}

var _ lines.Takers = (*takers)(nil)

// takers are valid until the next are asked for.
func (s *Scheduler) takers(v plan.View, shape *plan.Shape, now bool) *takers {
	s.making.takers = takers{s, v, shape, shape.Milli(shape.Least()), now}
	return &s.making.takers
}

// Turn is that of the ledger.
func (t *takers) Turn() int64 { return t.s.claims.Turn() }

// Leaf reports whether any of the jobs that are filed at a leaf may.
func (t *takers) Leaf(leaf int32) bool {
	return t.s.claims.MayEntitle(leaf, t.shape.Models, t.milli)
}

// Best reports whether the best job of a class may.
func (t *takers) Best(c *lines.Class) bool {
	return t.s.takesBack(t.v, c) && (!t.now || t.s.claims.MayTakeBack(t.v, t.s.lines.Pass(), t.shape, c.Best().Priority))
}

// crowd blocks all classes of a shape for which there is no room: nobody's job of it
// fits, unless it may take room back.
func (s *Scheduler) crowd(d *plan.Draft, id int32) {
	s.lines.Crowd(id, d.Turns(), s.takers(d.View, d.ShapeOf(id), true))
}

// keepOut blocks, untried, all classes of a shape whose best job takes at least as long as that of a class, which was just
// tried and found no room beside the claims, as they find none either: where no more claims are to be made, and nothing
// but free room is asked for.
func (s *Scheduler) keepOut(d *plan.Draft, c *lines.Class) {
	v, shape, job := d.View, d.ShapeOf(c.Shape), c.Best().Job
	if !s.agenda.Full() || len(s.agenda.Windows()) > 0 || shape.Elastic() || s.parts.Sharer != nil || s.placing.MayFind() || s.able.patient || s.room.Moves() {
		return
	}
	n := shape.Least()
	length := s.agenda.Length(v, job, n)
	s.lines.KeepOut(lines.Beside{
		Class:   c,
		Steps:   s.parts.Reserve.Foresight == nil, // classes are told apart by this length, and by no other
		Shorter: func(other plan.JobID) bool { return other == job || s.agenda.Length(v, other, n) < length },
		Claims:  s.agenda.Claims(),
		Takers:  s.takers(v, shape, false),
	})
}
