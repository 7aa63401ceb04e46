package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
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
			if packed := d.Job(job).Reason.Code == plan.Packed; packed != shares || s.stays(job) { // who stays goes with its host
				continue
			}
			s.stop(d, g.Run, plan.Reason{Code: plan.Unpacked, A: int64(g.Host)})
		}
		if opened {
			s.reopenAll()
		}
	}
}

// reopen lets those be tried again for whom there may be a place now.
func (s *Scheduler) reopen(d *plan.Draft, room bool) {
	s.claims.tree.age(d.View)
	if room || s.lines.roomRetry <= d.Now() {
		s.recallAside(d)
	}
	if room {
		s.mend(d)
		s.reopenRoomy(d.View)
	}
	if s.lines.roomRetry <= d.Now() {
		s.lines.roomRetry = unit.Never
		s.reopenAll()
	}
	if s.claims.unprotected <= d.Now() {
		s.claims.unprotected = unit.Never
		s.reopenTakers(d.View)
	}
	s.expire(d)
}
