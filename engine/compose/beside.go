package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/engine/room"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// How jobs that would wait live beside others, where the composition shares devices, and
// how they come to devices of their own. A guest that would gain by those is filed among
// the jobs that wait, in a class of its own kind, and is tried as they are.

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
	if s.files.Longs(d.View, seen) != (s.lines.ClassOf(seen) != nil) {
		s.files.Drop(d.View, seen)
		s.files.FileActive(d.View, seen)
	}
}

// moved starts a guest on devices of its own, in a start that waits for its end; where there is no
// room, also by others giving way, it goes on as it does.
func (s *Scheduler) moved(d *plan.Draft, it item, w *allocate.Wish) (got room.Got) {
	mark, run := d.Mark(), d.Job(it.Job).Run
	if at := law.ChangesFrom(d.View, run); at > d.Now() {
		s.room.Retry = min(s.room.Retry, at)
		return got
	}
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
		s.files.Drop(d.View, job)
		s.files.File(d.View, job)
	}
}
