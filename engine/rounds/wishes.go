package rounds

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/pipelines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// CarryOut carries the wishes out: first what gives room, then what takes it. Of several
// queues the tree says whose wish is next.
func (r *Round) CarryOut(d *plan.Draft) {
	for len(r.wish) < d.Jobs() {
		r.wish = append(r.wish, 0)
	}
	for i := range r.wishes {
		r.wishes[i].Check()
		r.wish[r.wishes[i].Job] = int32(i) + 1
	}
	r.yields, r.turns, r.ended.list, r.otherwise = r.yields[:0], r.turns[:0], r.ended.list[:0], false
	r.why.forget()
	for id := range plan.RunID(d.RunSlots()) {
		if status, _ := d.Works(id); !r.between && status.HasBegun() && !r.room.Stays(d.JobOf(id)) && !r.asItIs(d.View, id) {
			run := d.Run(id)
			r.keepOrEnd(d, id, &run)
		}
	}
	ruled := r.room.Ruled()
	if r.claims.Shared() {
		r.grantByQueue(d)
	} else {
		r.grantInOrder(d, ruled)
	}
	for i := range r.wishes {
		w := &r.wishes[i]
		if run := d.RunOf(w.Job); ruled && run != plan.None && w.Share != nil && !placing.Guest(w) && d.Run(run).Terms.Share.Guest != plan.None {
			was := d.Run(run)
			r.regrant(d, run, &was, w) // what its queue had no room for may be free by now
		}
		r.wish[w.Job] = 0
	}
}

// grantInOrder grants the wishes in their order; then, where a run was not moved as wished, those in any place whose
// own was not free; and then what jobs without one would have where others have a word: there, and where the law has
// kept a run, it is not as the decider planned.
func (r *Round) grantInOrder(d *plan.Draft, ruled bool) {
	ruled = ruled || r.room.AnyStays()
	for i := range r.wishes {
		if w := &r.wishes[i]; asksForRoom(w) {
			r.grant(d, w)
		}
	}
	if r.otherwise || r.room.AnyStays() {
		for _, w := range elsewhere(r.wishes, r.lines.InLine) {
			r.grant(d, &w) // its place is not what it was to be
		}
	}
	for _, id := range r.line {
		if asksForRoom(r.of(id)) || !r.lines.InLine(id) {
			continue
		}
		if !ruled || r.gathers || !r.grant(d, own(d.View, id)) {
			r.passedOver(d, id)
		}
	}
}

// elsewhere are the wishes for room in one place of jobs that wait, as wishes for it in any.
func elsewhere(wishes []allocate.Wish, waits func(job plan.JobID) bool) (anywhere []allocate.Wish) {
	for _, w := range wishes {
		if asksForRoom(&w) && w.Slots != nil && waits(w.Job) && !placing.Guest(&w) {
			w.Slots = nil
			anywhere = append(anywhere, w)
		}
	}
	return anywhere
}

// asksForRoom reports whether a wish is one, and for a run that computes.
func asksForRoom(w *allocate.Wish) bool { return w != nil && w.Workers > 0 && !w.Suspend }

// own is what a job that the decider has no place for would have by itself.
func own(v plan.View, id plan.JobID) *allocate.Wish {
	shape := v.Shape(id)
	return &allocate.Wish{Job: id, Workers: shape.Gang, Reason: plan.Reason{Code: plan.Fits, A: shape.Milli(shape.Gang)}}
}

// settleTime is after how long a decision that was taken a moment ago may be revised.
const settleTime = unit.Second

// decidedNow reports whether what a run is about was decided a moment ago, and stands:
// else two wishes that follow from each other's outcome would be carried out in turn for
// ever, within one instant.
func decidedNow(v plan.View, is *plan.Run) bool {
	return is.Since == v.Now() && is.Status != plan.Suspended || is.Began == v.Now()
}

// asItIs reports whether what is wished for a run is no more than its workers and device models,
// and it has them: it goes on, as most do.
func (r *Round) asItIs(v plan.View, id plan.RunID) bool {
	w := r.of(v.JobOf(id))
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
func (r *Round) keepOrEnd(d *plan.Draft, id plan.RunID, is *plan.Run) {
	w := r.of(is.Job)
	switch gone := w == nil || w.Workers == 0 && !w.Suspend; {
	case decidedNow(d.View, is):
		if gone || w.Suspend || !asWished(d.View, id, is, w) || otherShare(is, w) {
			r.again = min(r.again, d.Now().Add(settleTime))
		}
	case gone:
		r.wishedAway(d, id, is, w)
	case w.Suspend:
		r.rest(d, id, is, w)
	case !asWished(d.View, id, is, w):
		r.change(d, id, is, w)
	case otherShare(is, w):
		r.regrant(d, id, is, w)
	}
}

// wishedAway ends a run that is wished away; or it has that yield, where others have a word in who may run.
func (r *Round) wishedAway(d *plan.Draft, id plan.RunID, is *plan.Run, w *allocate.Wish) {
	if r.room.Ruled() || r.claims.Keeps(d.View, is.Job) {
		r.yields = append(r.yields, is.Job)
		return
	}
	r.Stop(d, id, ends(w))
}

// rest suspends a run that is wished so and has had its slice, at once or for who takes its turn.
func (r *Round) rest(d *plan.Draft, id plan.RunID, is *plan.Run, w *allocate.Wish) {
	switch {
	case is.Status != plan.Running || !hadSlice(r.switcher, d.View, is):
	case r.room.Ruled():
		r.turns = append(r.turns, is.Job)
	default:
		d.Suspend(id, w.Reason)
	}
}

// change ends a run that is wished at another size, or elsewhere, if that is worth it; or it has it yield, where
// others have a word and it is to be smaller.
func (r *Round) change(d *plan.Draft, id plan.RunID, is *plan.Run, w *allocate.Wish) {
	switch ruled := r.room.Ruled(); {
	case ruled && w.Workers < is.Workers:
		r.yields = append(r.yields, is.Job)
	case !ruled && r.worth(d.View, id, is, w):
		r.Stop(d, id, ends(w))
	default:
		r.otherwise = true
	}
}

// ends is the reason of a wish as that of an end: what says why a job starts does not say why its run goes,
// and would be above the law.
func ends(w *allocate.Wish) plan.Reason {
	if w == nil || !w.Reason.Code.Willed() {
		return plan.Reason{Code: plan.RoundPlan}
	}
	return w.Reason
}

// otherShare reports whether a run is to use its devices otherwise than it does: one that
// was started for a claim of its queue does not yet as the decider wishes.
func otherShare(is *plan.Run, w *allocate.Wish) bool {
	return w.Share != nil && *w.Share != is.Terms.Share
}

// regrant lets a run use its devices as wished. A guest that is to have its devices for itself
// asks its queue for them.
func (r *Round) regrant(d *plan.Draft, id plan.RunID, is *plan.Run, w *allocate.Wish) {
	if is.Terms.Share.Guest != plan.None && !placing.Guest(w) {
		shape := d.Shape(is.Job)
		if models, _ := d.MayTake(&r.claims.Ledger, is.Job, shape.Models, shape.Milli(is.Workers)); models == 0 {
			return
		}
	}
	if d.Regrant(id, is.Terms.WithShare(w.Share), w.Reason) {
		r.cycle.Drop(d.View, is.Job)
		r.cycle.FileRunning(d.View, is.Job)
	}
}

// Stop ends a run and puts its job back in the line.
func (r *Round) Stop(d *plan.Draft, id plan.RunID, reason plan.Reason) {
	job, e := d.JobOf(id), r.ended.of(d.View, id)
	if d.Stop(id, reason, r.placing.Price(d.View, job)) {
		e.stop = d.Run(id).Change
		r.ended.list = append(r.ended.list, e)
		r.cycle.Drop(d.View, job)
		r.cycle.File(d.View, job)
	}
}

// leastSlice is how many times as long as its switch a slice must be.
const leastSlice = 10

// hadSlice reports whether a run has computed for long enough to pay for being switched out and in again.
func hadSlice(by allocate.Switcher, v plan.View, is *plan.Run) bool {
	return by == nil || v.Now().Sub(is.Since) >= leastSlice*by.Switch(v, is.Job, plan.None)
}

// asWished reports whether a run has the workers and the place that are wished.
func asWished(v plan.View, id plan.RunID, is *plan.Run, w *allocate.Wish) bool {
	if is.Workers != w.Workers {
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
// giving workers up is not held back here, since others were promised them, but the law may (endings.unlawful).
func (r *Round) worth(v plan.View, id plan.RunID, is *plan.Run, w *allocate.Wish) bool {
	if w.Workers > is.Workers && len(pipelines.Avoided(v, is.Job)) > 0 {
		return false // what is free is what it left
	}
	if w.Workers < is.Workers || w.Reason.Code == plan.Moved || !is.Status.Steady() {
		return true
	}
	old, rate := is.RateMicro, rateAsWished(v, id, is.Job, w)
	ahead := DefaultHorizon
	if left, known := v.Left(is.Job); known && old > 0 {
		ahead = min(ahead, unit.Duration(int64(left)/old*plan.FullRate))
	}
	lost, _, _ := victims.Price(v, id)
	return float64(rate-old)*float64(ahead) > float64(r.placing.Price(v, is.Job)+lost)*float64(rate)
}

// rateAsWished is how fast a job would go as wished, on the best device model that it may get.
func rateAsWished(v plan.View, id plan.RunID, job plan.JobID, w *allocate.Wish) (rate int64) {
	model, several := v.Where(id)
	may := func(m int32) bool {
		if w.Slots != nil {
			return v.Node(w.Slots[0].Node).Model == m
		}
		return w.Models == 0 || w.Models&(1<<m) != 0
	}
	for m := range int32(v.Room().Models()) {
		if may(m) {
			rate = max(rate, v.Rate(job, m, w.Workers, several && model == m || len(w.Slots) > 1))
		}
	}
	return rate
}

// grant resumes, grows or starts a job as wished: at the size, or at the largest smaller
// one for which there is a place. It reports whether the job has a run then.
func (r *Round) grant(d *plan.Draft, w *allocate.Wish) bool {
	phase, run, _ := d.Stands(w.Job)
	if run != plan.None {
		status, workers := d.Works(run)
		if moves := w.Reason.Code == plan.Moved; status == plan.Suspended && !moves {
			r.HandOver(d, w, func() bool { return d.Resume(run, w.Reason) })
		} else if status.Steady() && !r.between && r.room.Ruled() && w.Workers >= workers && !r.room.Stays(w.Job) {
			r.mayRegrow(d, w, run)
		}
		return true
	}
	if phase != plan.Waiting {
		return false
	}
	it, mark := lines.Item{Job: w.Job}, d.Mark()
	got := r.room.Place(d, it, w)
	if got.Workers == 0 && r.cycle.Reserve(d, w.Job, got.Why) {
		got = r.room.Place(d, it, w) // its place is this moment: it may fit now that it is its own
	}
	if got.Workers == 0 {
		r.waits(d, w.Job, plan.Reason{})
		return false
	}
	changes := d.Changes()
	if why := r.ended.tookRoom(w, changes[len(changes)-1].After); why.Code != plan.NoReason {
		d.Rollback(mark)
		there := *w
		there.Reason = why
		got = r.room.Place(d, it, &there)
	}
	r.cycle.Settled(d, it, got.Workers, w.Workers)
	r.cycle.Evicted(d)
	return true
}

// mayRegrow regrows a run that is not as wished, if that is worth it, once it has earned back its start or something
// has changed.
func (r *Round) mayRegrow(d *plan.Draft, w *allocate.Wish, run plan.RunID) {
	is := d.Run(run)
	if decidedNow(d.View, &is) || asWished(d.View, run, &is, w) || !r.worth(d.View, run, &is, w) {
		return
	}
	if at := law.ChangesFrom(d.View, run); at > d.Now() {
		r.again = min(r.again, at)
		return
	}
	r.regrow(d, w, &is)
}

// regrow gives a run more workers, or another place, in one piece: it is stopped only if
// it can start as wished, or at least with more than it has, at once.
func (r *Round) regrow(d *plan.Draft, w *allocate.Wish, is *plan.Run) {
	mark, run := d.Mark(), d.Job(w.Job).Run
	r.claims.Discharge(w.Job)
	bigger := *w
	if w.Workers > is.Workers {
		bigger.Slots = nil
	}
	n := int32(0)
	if d.Stop(run, w.Reason, r.placing.Price(d.View, w.Job)) {
		shape := d.Shape(w.Job)
		for n = w.Workers; n > 0 && !r.room.Start(d, w, n, plan.PlanTerms{}); {
			if w, n = &bigger, shape.Smaller(n); n <= is.Workers {
				n = 0
			}
		}
	}
	if n == 0 {
		d.Rollback(mark)
		r.claims.Charge(d.View, w.Job)
		return
	}
	r.claims.Charge(d.View, w.Job)
	r.cycle.Drop(d.View, w.Job)
	r.cycle.FileRunning(d.View, w.Job)
	r.cycle.Evicted(d)
}

// passedOver says why a job waits that the decider has no place for, when the kind of
// reason is a new one: it is the decider's own where there would be room.
func (r *Round) passedOver(d *plan.Draft, id plan.JobID) {
	phase, run, _ := d.Stands(id)
	if phase != plan.Waiting || run != plan.None {
		return
	}
	own := plan.Reason{Code: plan.RoundPlan}
	if w := r.of(id); w != nil && w.Reason.Code != plan.NoReason {
		own = w.Reason
	}
	r.waits(d, id, own)
}

// waits is explain for a job that the decider has this reason for.
func (r *Round) waits(d *plan.Draft, id plan.JobID, own plan.Reason) {
	if r.room.Ruled() {
		r.cycle.Explain(d, id, own)
		return
	}
	why := r.why.of(d, id, own, r.cycle.Obstacle)
	if _, _, now := d.Stands(id); why.Code != now {
		d.Explain(id, why)
	}
}

// PutOffAll says of new jobs why they wait where the decider is not asked now.
func (r *Round) PutOffAll(d *plan.Draft, jobs []plan.JobID) {
	r.why.forget()
	for _, id := range jobs {
		if r.lines.InLine(id) {
			r.passedOver(d, id)
		}
	}
}
