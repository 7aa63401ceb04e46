package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// carryOut carries the wishes out: first what gives room, then what takes it. Of several
// queues the tree says whose wish is next.
func (s *Scheduler) carryOut(d *plan.Draft) {
	r := s.round
	for len(r.wish) < d.Jobs() {
		r.wish = append(r.wish, 0)
	}
	for i := range r.wishes {
		r.wishes[i].Check()
		r.wish[r.wishes[i].Job] = int32(i) + 1
	}
	r.yields, r.turns, r.failed, r.why, r.ended = r.yields[:0], r.turns[:0], r.failed[:0], r.why[:0], r.ended[:0]
	for id := range plan.RunID(d.RunSlots()) {
		if status, _ := d.Works(id); !r.between && hasBegun(status) && !s.stays(d.JobOf(id)) && !s.asItIs(d.View, id) {
			run := d.Run(id)
			s.keepOrEnd(d, id, &run)
		}
	}
	ruled := s.ruled()
	if s.claims.Shared() {
		s.grantByQueue(d)
	} else {
		s.grantInOrder(d, ruled)
	}
	for i := range r.wishes {
		w := &r.wishes[i]
		if run := d.RunOf(w.Job); ruled && run != plan.None && w.Share != nil && !guest(w) && d.Run(run).Terms.Share.Guest != plan.None {
			was := d.Run(run)
			s.regrant(d, run, &was, w) // what its queue had no room for may be free by now
		}
		r.wish[w.Job] = 0
	}
}

// ruled reports whether claims or the calendar have a word in who may run. Then a run is
// stopped only for one that starts in its room, since the decider may have wished it away
// for one that may not start.
func (s *Scheduler) ruled() bool {
	return s.claims.Bounds() || !s.agenda.Empty()
}

// grantInOrder grants the wishes in their order, and then what jobs without one would have where others
// have a word: there, and where the law has kept a run, it is not as the decider planned.
func (s *Scheduler) grantInOrder(d *plan.Draft, ruled bool) {
	r := s.round
	ruled = ruled || len(s.making.stays) > 0
	for i := range r.wishes {
		if w := &r.wishes[i]; asksForRoom(w) {
			s.grant(d, w)
		}
	}
	for _, id := range r.line {
		if asksForRoom(r.of(id)) || !s.lines.InLine(id) {
			continue
		}
		if !ruled || r.gathers || !s.grant(d, s.own(d.View, id)) {
			s.passedOver(d, id)
		}
	}
}

// asksForRoom reports whether a wish is one, and for a run that computes.
func asksForRoom(w *allocate.Wish) bool { return w != nil && w.Workers > 0 && !w.Suspend }

// own is what a job that the decider has no place for would have by itself.
func (s *Scheduler) own(v plan.View, id plan.JobID) *allocate.Wish {
	shape := v.Shape(id)
	return &allocate.Wish{Job: id, Workers: shape.Gang, Reason: plan.Reason{Code: plan.Fits, A: shape.Milli(shape.Gang)}}
}

// settleTime is after how long a decision that was taken a moment ago may be revised.
const settleTime = unit.Second

// decidedNow reports whether what a run is about was decided a moment ago, and stands:
// else two wishes that follow from each other's outcome would be carried out in turn for
// ever, within one instant.
func decidedNow(v plan.View, r *plan.Run) bool {
	return r.Since == v.Now() && r.Status != plan.Suspended || r.Began == v.Now()
}

// asItIs reports whether what is wished for a run is no more than its workers and device models,
// and it has them: it goes on, as most do.
func (s *Scheduler) asItIs(v plan.View, id plan.RunID) bool {
	w := s.round.of(v.JobOf(id))
	if w == nil || w.Suspend || w.Slots != nil || w.Share != nil {
		return false
	}
	_, workers := v.Works(id)
	return workers == w.Workers && onModels(v, id, w.Models)
}

// onModels reports whether a run is on one of the device models wished, 0 for any.
func onModels(v plan.View, id plan.RunID, models uint64) bool {
	if models == 0 {
		return true
	}
	model, _ := v.Where(id)
	return models&(1<<model) != 0
}

// keepOrEnd lets a run go on, on the terms wished, or ends it.
func (s *Scheduler) keepOrEnd(d *plan.Draft, id plan.RunID, r *plan.Run) {
	w, ruled := s.round.of(r.Job), s.ruled()
	if decidedNow(d.View, r) {
		if w == nil || w.Suspend || w.Workers == 0 || !s.asWished(d.View, id, r, w) || otherShare(r, w) {
			s.round.again = min(s.round.again, d.Now().Add(settleTime))
		}
		return
	}
	switch {
	case w == nil || w.Workers == 0 && !w.Suspend:
		reason := plan.Reason{Code: plan.RoundPlan}
		if w != nil {
			reason = ends(w)
		}
		if ruled || s.claims.Keeps(d.View, r.Job) {
			s.round.yields = append(s.round.yields, r.Job)
			return
		}
		s.stop(d, id, reason)
	case w.Suspend:
		if r.Status == plan.Running && s.slice(d.View, r) {
			if ruled {
				s.round.turns = append(s.round.turns, r.Job)
			} else {
				d.Suspend(id, w.Reason)
			}
		}
	case !s.asWished(d.View, id, r, w):
		if ruled && w.Workers < r.Workers {
			s.round.yields = append(s.round.yields, r.Job)
		} else if !ruled && s.worth(d.View, id, r, w) {
			s.stop(d, id, ends(w))
		}
	case otherShare(r, w):
		s.regrant(d, id, r, w)
	}
}

// ends is the reason of a wish as that of an end: what says why a job starts does not say why its run goes,
// and would be above the law.
func ends(w *allocate.Wish) plan.Reason {
	if !w.Reason.Code.Willed() {
		return plan.Reason{Code: plan.RoundPlan}
	}
	return w.Reason
}

// otherShare reports whether a run is to use its devices otherwise than it does: one that
// was started for a claim of its queue does not yet as the decider wishes.
func otherShare(r *plan.Run, w *allocate.Wish) bool {
	return w.Share != nil && *w.Share != r.Terms.Share
}

// regrant lets a run use its devices as wished. A guest that is to have its devices for itself
// asks its queue for them.
func (s *Scheduler) regrant(d *plan.Draft, id plan.RunID, r *plan.Run, w *allocate.Wish) {
	if r.Terms.Share.Guest != plan.None && !guest(w) {
		shape := d.Shape(r.Job)
		if models, _ := d.MayTake(&s.claims.Ledger, r.Job, shape.Models, shape.Milli(r.Workers)); models == 0 {
			return
		}
	}
	if d.Regrant(id, r.Terms.WithShare(w.Share), w.Reason) {
		s.drop(d.View, r.Job)
		s.fileRunning(d.View, r.Job)
	}
}

// stop ends a run for a wish and puts its job back in the line.
func (s *Scheduler) stop(d *plan.Draft, id plan.RunID, reason plan.Reason) {
	job, e := d.Run(id).Job, ending{}
	if s.round != nil {
		e = s.round.ending(d.View, id)
	}
	if d.Stop(id, reason, s.price(d.View, job)) {
		if e.stop = d.Run(id).Change; s.round != nil {
			s.round.ended = append(s.round.ended, e)
		}
		s.drop(d.View, job)
		s.file(d.View, job)
	}
}

// leastSlice is how many times as long as its switch a slice must be.
const leastSlice = 10

// slice reports whether a run has computed for long enough to pay for being switched
// out and in again.
func (s *Scheduler) slice(v plan.View, r *plan.Run) bool {
	return s.parts.Switcher == nil || v.Now().Sub(r.Since) >= leastSlice*s.parts.Switcher.Switch(v, r.Job, plan.None)
}

// price is the running time that stopping a job and starting it again costs.
func (s *Scheduler) price(v plan.View, id plan.JobID) unit.Duration {
	if by, ok := strategy.Can[allocate.Streamer](s.parts.Switcher); ok {
		return by.Switch(v, id, id)
	}
	c := v.Job(id).Checkpoint
	return c.Save + c.Load
}

// asWished reports whether a run has the workers and the place that are wished.
func (s *Scheduler) asWished(v plan.View, id plan.RunID, r *plan.Run, w *allocate.Wish) bool {
	if r.Workers != w.Workers {
		return false
	}
	if w.Slots == nil {
		return onModels(v, id, w.Models)
	}
	return onSlots(v, id, w.Slots)
}

// onSlots reports whether a run has as many workers on each node, and on each device
// that is named, as the slots say.
func onSlots(v plan.View, id plan.RunID, slots []plan.Slot) bool {
	perWorker := max(1, v.Shape(v.Run(id).Job).Devices)
	var few [2][16]plan.NodeID // most runs are small
	var fewDevices [16]plan.DeviceID
	nodes, devices := few[0][:0], fewDevices[:0] // one node per worker
	n := int32(0)
	v.GrantsOf(id, func(g plan.Grant) {
		if n%perWorker == 0 {
			nodes = append(nodes, g.Node)
		}
		n++
		devices = append(devices, g.Device)
	})
	wantNodes := few[1][:0]
	for i := range slots {
		for range slots[i].Workers {
			wantNodes = append(wantNodes, slots[i].Node)
		}
		if d := slots[i].Device; d != plan.None && !slices.Contains(devices, d) {
			return false
		}
		for _, d := range slots[i].On {
			if !slices.Contains(devices, d) {
				return false
			}
		}
	}
	slices.Sort(nodes)
	slices.Sort(wantNodes)
	return slices.Equal(nodes, wantNodes)
}

// worth reports whether a change of size or place is made. One that takes nothing away
// from anybody, to the same or more workers, must win more than it costs within the
// horizon, unless the decider has weighed that itself and says that the run is moved;
// giving workers up is never held back, since others were promised them.
func (s *Scheduler) worth(v plan.View, id plan.RunID, r *plan.Run, w *allocate.Wish) bool {
	if w.Workers > r.Workers && len(avoided(v, r.Job)) > 0 {
		return false // what is free is what it left
	}
	if w.Workers < r.Workers || w.Reason.Code == plan.Moved || r.Status != plan.Running && r.Status != plan.Suspended {
		return true
	}
	model, several := v.Where(id)
	old := r.RateMicro
	rate := int64(0)
	for m := range int32(v.Room().Models()) {
		if w.Slots == nil && (w.Models == 0 || w.Models&(1<<m) != 0) || w.Slots != nil && v.Node(w.Slots[0].Node).Model == m {
			rate = max(rate, v.Rate(r.Job, m, w.Workers, several && model == m || len(w.Slots) > 1))
		}
	}
	ahead := DefaultHorizon
	if left, known := v.Left(r.Job); known && old > 0 {
		ahead = min(ahead, unit.Duration(int64(left)/old*plan.FullRate))
	}
	return float64(rate-old)*float64(ahead) > float64(s.price(v, r.Job))*float64(rate)
}

// grant resumes, grows or starts a job as wished: at the size, or at the largest smaller
// one for which there is a place. It reports whether the job has a run then.
func (s *Scheduler) grant(d *plan.Draft, w *allocate.Wish) bool {
	phase, run, _ := d.Stands(w.Job)
	if run != plan.None {
		status, workers := d.Works(run)
		if moves := w.Reason.Code == plan.Moved; status == plan.Suspended && !moves {
			s.handOver(d, w, func() bool { return d.Resume(run, w.Reason) })
		} else if (status == plan.Running || status == plan.Suspended) && !s.round.between && s.ruled() && w.Workers >= workers && !s.stays(w.Job) {
			s.mayRegrow(d, w, run)
		}
		return true
	}
	if phase != plan.Waiting {
		return false
	}
	s.making.why, s.making.held = plan.Reason{}, false
	it, mark := item{Job: w.Job}, d.Mark()
	n, _ := s.place(d, it, w)
	if n == 0 && s.reserve(d, w.Job) {
		n, _ = s.place(d, it, w) // its place is this moment: it may fit now that it is its own
	}
	if n == 0 {
		s.waits(d, w.Job, plan.Reason{})
		return false
	}
	changes := d.Changes()
	if why := s.round.tookRoom(w, changes[len(changes)-1].After); why.Code != plan.NoReason {
		d.Rollback(mark)
		there := *w
		there.Reason = why
		n, _ = s.place(d, it, &there)
	}
	s.settled(d, it, n, w.Workers, plan.None)
	s.evicted(d)
	return true
}

// handOver lets a job begin its turn: those that are wished suspended on its devices are,
// if it can.
func (s *Scheduler) handOver(d *plan.Draft, w *allocate.Wish, begins func() bool) bool {
	mark := d.Mark()
	if len(s.round.turns) > 0 {
		s.endTurns(d, w)
	}
	if !begins() {
		d.Rollback(mark)
		return false
	}
	return true
}

// endTurns suspends those that are wished so on the devices of a wish.
func (s *Scheduler) endTurns(d *plan.Draft, w *allocate.Wish) {
	var on []plan.DeviceID
	if run := d.RunOf(w.Job); run != plan.None {
		d.GrantsOf(run, func(g plan.Grant) { on = append(on, g.Device) })
	}
	for i := range w.Slots {
		on = append(append(on, w.Slots[i].On...), w.Slots[i].Device)
	}
	for _, other := range s.round.turns {
		run, meet := d.RunOf(other), false
		if run == plan.None {
			continue
		} else if status, _ := d.Works(run); status != plan.Running {
			continue
		}
		d.GrantsOf(run, func(g plan.Grant) { meet = meet || g.Device != plan.None && slices.Contains(on, g.Device) })
		if meet {
			d.Suspend(run, s.round.of(other).Reason)
		}
	}
}

// attempt is a way in which room could not be made: no other job of the same queue, shape
// and priority can have it made either until the draft changes.
type attempt struct {
	leaf, shape, priority, workers int32
	changes                        int
}

// mayRegrow regrows a run that is not as wished, if that is worth it.
func (s *Scheduler) mayRegrow(d *plan.Draft, w *allocate.Wish, run plan.RunID) {
	if r := d.Run(run); !decidedNow(d.View, &r) && !s.asWished(d.View, run, &r, w) && s.worth(d.View, run, &r, w) {
		s.regrow(d, w, &r)
	}
}

// regrow gives a run more workers, or another place, in one piece: it is stopped only if
// it can start as wished, or at least with more than it has, at once.
func (s *Scheduler) regrow(d *plan.Draft, w *allocate.Wish, r *plan.Run) {
	mark, run := d.Mark(), d.Job(w.Job).Run
	s.claims.Discharge(w.Job)
	bigger := *w
	if w.Workers > r.Workers {
		bigger.Slots = nil
	}
	n := int32(0)
	if d.Stop(run, w.Reason, s.price(d.View, w.Job)) {
		shape := d.Shape(w.Job)
		for n = w.Workers; n > 0 && !s.fits(d, w, n); {
			if w, n = &bigger, smaller(shape, n); n <= r.Workers {
				n = 0
			}
		}
	}
	if n == 0 {
		d.Rollback(mark)
		s.claims.Charge(d.View, w.Job)
		return
	}
	s.claims.Charge(d.View, w.Job)
	s.drop(d.View, w.Job)
	s.fileRunning(d.View, w.Job)
	s.evicted(d)
}

// passedOver says why a job waits that the decider has no place for, when the kind of
// reason is a new one: it is the decider's own where there would be room.
func (s *Scheduler) passedOver(d *plan.Draft, id plan.JobID) {
	phase, run, _ := d.Stands(id)
	if phase != plan.Waiting || run != plan.None {
		return
	}
	own := plan.Reason{Code: plan.RoundPlan}
	if w := s.round.of(id); w != nil && w.Reason.Code != plan.NoReason {
		own = w.Reason
	}
	s.waits(d, id, own)
}

// waits is explain for a job that the decider has this reason for.
func (s *Scheduler) waits(d *plan.Draft, id plan.JobID, own plan.Reason) {
	if s.ruled() {
		s.explain(d, id, plan.None, own)
		return
	}
	why := s.unruled(d, id, own)
	if _, _, now := d.Stands(id); why.Code != now {
		d.Explain(id, why)
	}
}

// unruled is what keeps a job waiting where nobody has a word in it but the decider and the room:
// the same for all of a shape, until something is started or ended.
func (s *Scheduler) unruled(d *plan.Draft, id plan.JobID, own plan.Reason) plan.Reason {
	r := s.round
	if d.Turns() != r.whyOf {
		r.why, r.whyOf = r.why[:0], d.Turns()
	}
	shape, _ := d.Kind(id)
	for int(shape) >= len(r.why) {
		r.why = append(r.why, because{})
	}
	k := &r.why[shape]
	if k.why.Code == plan.NoReason || k.own != own {
		*k = because{own, s.obstacle(d, id, plan.None, own)}
	}
	return k.why
}

// because is what keeps the jobs of a shape waiting for whom the decider has this reason.
type because struct{ own, why plan.Reason }

// putOffAll says of new jobs why they wait where the decider is not asked now.
func (s *Scheduler) putOffAll(d *plan.Draft, jobs []plan.JobID) {
	s.round.why = s.round.why[:0]
	for _, id := range jobs {
		if s.lines.InLine(id) {
			s.passedOver(d, id)
		}
	}
}
