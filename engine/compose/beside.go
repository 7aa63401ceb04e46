package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/room"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// How jobs that would wait live beside others, where the composition shares devices, and
// how they come to devices of their own. A guest that would gain by those is filed among
// the jobs that wait, in a class of its own kind, and is tried as they are.

// longs reports whether a job is a guest that wants devices of its own, and waits for them as others do.
func (s *Scheduler) longs(v plan.View, id plan.JobID) bool {
	run := v.Job(id).Run
	return s.parts.Sharer != nil && s.round == nil && run != plan.None && v.Run(run).Terms.Share.Guest != plan.None &&
		v.Run(run).Status == plan.Running && !s.room.Stays(id) && s.parts.Sharer.Moves(v, id)
}

// seen tells the sharer how busy a run was seen to keep its devices, and files a guest anew that was seen
// at another rate.
func (s *Scheduler) seen(d *plan.Draft, o *schedule.Observation) {
	if s.parts.Sharer == nil || s.round != nil {
		return
	}
	seen := o.Job
	if s.parts.Sharer.Sees(d.View, seen, o.Busy); d.Job(seen).Phase != plan.Active || d.Run(d.Job(seen).Run).Terms.Share.Guest == plan.None {
		return
	}
	if s.longs(d.View, seen) != (s.lines.ClassOf(seen) != nil) {
		s.drop(d.View, seen)
		s.fileActive(d.View, seen)
	}
}

// fileActive files a job that has a run: among those that wait, if it is a guest that longs for
// devices of its own.
func (s *Scheduler) fileActive(v plan.View, id plan.JobID) {
	if s.longs(v, id) && !s.never(v, id) {
		s.file(v, id)
	} else {
		s.fileRunning(v, id)
	}
}

// moved starts a guest on devices of its own, in a start that waits for its end; where there is no
// room, also by others giving way, it goes on as it does.
func (s *Scheduler) moved(d *plan.Draft, it item, w *allocate.Wish) (got room.Got) {
	mark, run := d.Mark(), d.Job(it.Job).Run
	if d.Run(run).Status != plan.Running || !d.Stop(run, plan.Reason{Code: plan.Moved}, s.placing.Price(d.View, it.Job)) {
		return got
	}
	w.Reason = plan.Reason{Code: plan.Moved}
	got = s.room.Place(d, it, w)
	if got.Workers == 0 || d.Run(d.Job(it.Job).Run).Terms.Share.Guest != plan.None { // its placer has it be a guest
		d.Rollback(mark)
		got.Workers, got.Took = 0, false
	}
	return got
}
