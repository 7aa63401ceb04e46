package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// resizeEvery is how often running elastic jobs are looked at.
const resizeEvery = unit.Minute

// leftAlone is how long a run is not resized: less than a period, since the period is
// counted from when its start was decided.
const leftAlone = resizeEvery / 2

// start starts jobs in order of rank until nothing more fits.
func (s *Scheduler) start(d *plan.Draft) {
	s.lines.NextPass()
	s.lines.ForgetKeptOut()
	for {
		c, next := s.best()
		if c == nil {
			if s.reopened(d) {
				continue
			}
			return
		}
		it := *c.Best()
		s.making.why, s.making.narrowed, s.making.held = plan.Reason{}, false, false
		ahead := s.lines.Ahead(c.Leaf, it)
		if ahead >= 0 && s.shortFirst() {
			if other := s.lines.ClassOf(ahead); other != nil && !other.Blocked() {
				ahead = plan.None // whom it passes would fit, and takes longer
			}
		}
		if s.placed(d, it, ahead, next) {
			s.evicted(d)
			continue
		}
		if d.Job(it.Job).Run != plan.None { // a guest goes on as it does
			s.lines.Block(c)
			continue
		}
		if s.reserve(d, it.Job) {
			continue // its place is this moment: it may fit now that it is its own
		}
		if s.making.why.Code == plan.NoReason && !s.making.narrowed && !s.rules.Preempt && !s.rules.Strict && s.claims.Shared() {
			if s.making.held {
				s.keepOut(d, c)
			} else {
				s.crowd(d, c.Shape)
			}
		}
		if s.setAside(d, it.Job) {
			continue
		}
		shorter := s.nextShorter(d, c)
		if shorter < 0 {
			s.lines.Block(c)
		}
		s.explain(d, it.Job, ahead, plan.Reason{})
		s.passOverUntil(c, shorter)
	}
}

// reopened has those tried again for whom what was started, claimed or put off has changed something, and
// reports whether there are any.
func (s *Scheduler) reopened(d *plan.Draft) bool {
	s.recallPassed(d)
	switch {
	case s.claims.newBorrower:
		s.claims.newBorrower = false
		s.reopenTakers(d.View)
	case !s.claimed(d) && !s.putOff(d):
		return !s.agenda.Full() && s.lines.LetIn() // claims kept them out without a try
	}
	s.lines.NextPass()
	return true
}

// best returns the class whose best job is next among those worth a try, and the
// runner-up's job for the dossier: of the queue that the tree puts first.
func (s *Scheduler) best() (c *lines.Class, next plan.JobID) {
	for leaf := s.nextLeaf(); leaf >= 0; leaf = s.nextLeaf() {
		if c = s.lines.First(leaf); c == nil {
			s.lines.Close(leaf)
			continue
		}
		if s.parts.Explain {
			return c, s.lines.RunnerUp(c)
		}
		return c, plan.None
	}
	return nil, plan.None
}

// shortFirst reports whether those who wait pass each other in order of how long they are likely to
// take. Where better ranks displace others that would be undone at once.
func (s *Scheduler) shortFirst() bool {
	return s.parts.Reserve.Foresight != nil && !s.rules.Preempt && !s.rules.Strict
}

// placed starts the next job of an order at the size it should have.
func (s *Scheduler) placed(d *plan.Draft, it item, ahead, next plan.JobID) bool {
	shape := d.Shape(it.Job)
	if s.hopeless(d.View, &it, shape) {
		return false
	}
	w := &s.making.wish
	*w = allocate.Wish{Job: it.Job, Workers: s.want(d.View, it.Job, shape)}
	if until, had := s.repairedBy(d.View, it.Job); until > d.Now() {
		w.Workers = max(w.Workers, had) // whatever its sizer would have it begin with now
	}
	w.Reason = plan.Reason{Code: plan.Fits, A: shape.Milli(w.Workers)}
	if ahead != plan.None {
		w.Reason = plan.Reason{Code: plan.Backfilled, A: int64(ahead)}
	}
	var n int32
	var took bool
	if d.Job(it.Job).Run != plan.None {
		n, took = s.moved(d, it, w)
	} else {
		n, took = s.place(d, it, w)
	}
	if n > 0 {
		s.settled(d, it, n, w.Workers, next)
	}
	if took {
		s.recallPassed(d)
		s.reopenRoomy(d.View) // what was taken may be more than was needed
	}
	return n > 0
}

// place starts a job where there is room for it, at the size wished or the largest
// smaller one, or else in room that others must give up for it: what its queue may claim
// before what its rank may. It returns the size, 0 if there is no place, and whether others
// gave way.
func (s *Scheduler) place(d *plan.Draft, it item, w *allocate.Wish) (n int32, took bool) {
	if n := s.free(d, w); n > 0 {
		return n, false
	}
	shape, j := d.Shape(w.Job), d.Job(w.Job)
	leaf := s.claims.LeafOf(d.View, &j)
	gave := d.Ended(w.Job) // who gave way takes nothing in the same decision, unless it was by rank and takes by rank
	if gave != nil && gave.Reason.Code == plan.Moved {
		gave = nil // it was a guest, and goes on as one if it gets nothing
	}
	for n := w.Workers; n > 0 && gave == nil; n = s.smaller(d.View, w, n) {
		claims := s.claims.Shared() && s.claims.Entitled(leaf, shape.Models, shape.Milli(n), j.Priority) && s.claims.MayTakeBack(d.View, s.lines.Pass(), shape, j.Priority)
		if (claims || s.round != nil && len(s.round.yields) > 0) && s.takeBack(d, w, n) {
			s.agenda.Overrule()
			return n, true
		}
	}
	beside, part := s.beside(d, w)
	if part >= asGood && s.fits(d, &beside, beside.Workers) {
		return beside.Workers, false
	}
	if n := s.clear(d, w); n > 0 {
		return n, true
	}
	if s.rules.Preempt && (gave == nil || gave.Reason.Code == plan.MadeWayFor) && s.displace(d, it, w) {
		s.agenda.Overrule()
		return w.Workers, true
	}
	if part >= asWell && part < asGood && s.fits(d, &beside, beside.Workers) {
		return beside.Workers, false
	}
	return 0, false
}

// free starts a job in free room, at the size wished or the largest smaller one. Exact
// places that were wished for another time or for a cluster without claims are only
// tried.
func (s *Scheduler) free(d *plan.Draft, w *allocate.Wish) int32 {
	if w.Slots != nil {
		if s.handOver(d, w, func() bool { return s.fits(d, w, w.Workers) }) {
			return w.Workers
		}
		if guest(w) || !s.round.between && !s.ruled() {
			return 0
		}
		anywhere := *w
		anywhere.Slots = nil
		w = &anywhere
	}
	for n := w.Workers; n > 0; n = s.smaller(d.View, w, n) {
		if s.fits(d, w, n) {
			return n
		}
	}
	return 0
}

// guest reports whether a wish is for a run in the gaps of another's, which reserves
// nothing.
func guest(w *allocate.Wish) bool { return w.Share != nil && w.Share.Guest != plan.None }

func (s *Scheduler) want(v plan.View, job plan.JobID, shape *plan.Shape) int32 {
	if !shape.Elastic() {
		return shape.Gang
	}
	return s.parts.Sizer.Want(v, job, allocate.Crowd{Active: s.lines.Active(), Devices: int64(v.Devices())})
}

// smaller returns the next smaller legal size, or 0.
func smaller(shape *plan.Shape, n int32) int32 {
	best := int32(0)
	if shape.Gang < n && shape.Elastic() {
		best = shape.Gang
	}
	for _, size := range shape.Sizes {
		if size < n && size > best {
			best = size
		}
	}
	return best
}

// fits promises a job n workers, on the slots wished or else where the placer likes it
// best: on devices that its queue may have, and that nobody else has a claim on.
func (s *Scheduler) fits(d *plan.Draft, w *allocate.Wish, n int32) bool {
	job, shape := w.Job, d.Shape(w.Job)
	models, milli := shape.Models, shape.Milli(n)
	if w.Models != 0 {
		models &= w.Models
	}
	if guest(w) {
		if milli = 0; s.claims.Bounds() && d.Job(w.Share.Guest).Run == plan.None {
			return false // without a host it would hold what nobody counts
		}
	}
	models, bar := d.MayTake(&s.claims.Ledger, job, models, milli)
	if bar.Kind != queue.NoBar && models == 0 {
		s.making.why = plan.Barred(bar)
		return false
	}
	if models != shape.Models {
		s.making.narrow = *shape
		s.making.narrow.Models = models
		shape, s.making.narrowed = &s.making.narrow, true
	}
	anywhere := w.Slots == nil && !guest(w) && !s.finds(d.View, job)
	if anywhere && !roomFor(d.View, shape, n) {
		return false
	}
	holds := s.agenda.Holds(moment(d), job, n)
	s.making.held = !s.agenda.Empty()
	if anywhere && !roomBeside(d.View, shape, n, holds) {
		return false
	}
	d.Hold(holds)
	defer d.Unhold()
	if s.find(d, w, n, shape); len(s.making.found) == 0 {
		return false
	}
	best := s.parts.rate(d.View, job, n, shape, s.making.found)
	chosen := &s.making.found[best]
	if w.Share != nil {
		chosen.Share = w.Share
	}
	terms, planned, null := s.parts.terms(d, job, chosen)
	if k := s.making.keeps; k.Keeps > 0 {
		if terms.Plan.Keeps = k.Keeps; d.ProfileOf(job).Stages > 0 {
			terms.Plan.ID = k.ID // the layers stay where they are, and what was learned of them with them
		}
	}
	run, why := s.parts.begin(d, job, chosen, terms, w.Reason)
	if why.Code != plan.NoReason {
		return false
	}
	d.Unhold() // the calendar looks at what is free
	s.agenda.Started(moment(d), run)
	if s.parts.Explain {
		s.noteSteps(d, job, terms, planned, null)
	}
	return true
}

// find looks for places for n workers: the slots wished, or those that the placer
// proposes.
func (s *Scheduler) find(d *plan.Draft, w *allocate.Wish, n int32, shape *plan.Shape) {
	s.making.found = s.making.found[:0]
	if w.Slots != nil {
		for i := range w.Slots {
			if at := w.Slots[i].Node; shape.Devices > 0 && shape.Models&(1<<d.Node(at).Model) == 0 || s.agenda.Closes(at, d.Now(), d.Now().Add(calendar.Length(d.View, w.Job, n))) {
				return
			}
		}
		s.making.found = append(s.making.found, allocate.Candidate{Slots: slices.Clone(w.Slots)}) // placers use it again
		return
	}
	k := 1
	if s.parts.Rater != nil {
		k = ratedCandidates
	} else if s.parts.Explain {
		k = 2
	}
	s.making.found = s.parts.Placer.Place(d.View, allocate.Need{Job: w.Job, Attempt: d.Job(w.Job).Attempt, Workers: n, Shape: shape}, k, s.making.found)
}

// noteSteps writes the dossier's lines of steps 1, 2, 4, 5 and 6: what was chosen,
// what was rejected, and the numbers.
func (s *Scheduler) noteSteps(d *plan.Draft, job plan.JobID, t plan.Terms, planned, null unit.Duration) {
	j := d.Job(job)
	d.Note(plan.Profiling, int64(j.Estimate), int64(j.Declared), int64(j.Estimate), int64(j.Declared))
	won, lost := s.making.found[0], allocate.Candidate{}
	rejected := int64(plan.None)
	if len(s.making.found) > 1 {
		lost, rejected = s.making.found[1], int64(s.making.found[1].Slots[0].Node)
	}
	d.Note(plan.Allocation, int64(won.Slots[0].Node), rejected, won.Score, lost.Score)
	d.Note(plan.Pipelining, int64(t.Plan.ID), plan.None, int64(planned), int64(null))
	d.Note(plan.Flows, int64(t.Traffic.Class), 0, int64(t.Traffic.Weight), 1000)
	d.Note(plan.Execution, int64(j.Attempt), 0, int64(j.Checkpoint.Every), int64(j.Checkpoint.Load))
}

// settled moves a job that was just promised a run from the waiting to the running.
func (s *Scheduler) settled(d *plan.Draft, it item, n, want int32, next plan.JobID) {
	if s.parts.Explain {
		var lost int64
		if next != plan.None {
			key, _ := s.parts.Order.Key(d.View, next)
			lost = key[0]
		}
		d.Note(plan.Scheduling, int64(it.Job), int64(next), it.Key[0], lost)
	}
	j := d.Job(it.Job)
	leaf := s.claims.LeafOf(d.View, &j)
	over := s.claims.Shared() && s.claims.OverGuarantee(leaf)
	s.drop(d.View, it.Job)
	s.fileRunning(d.View, it.Job)
	if s.agenda.Fulfil(it.Job) {
		s.reopenRoomy(d.View) // it may have started elsewhere than it claimed
	}
	s.claims.newBorrower = s.claims.newBorrower || s.claims.Shared() && !over && s.claims.OverGuarantee(leaf)
}

// rebalance resizes running elastic jobs whose sizer wants them another size, or elsewhere. Either
// is a stop and a start that waits for it.
func (s *Scheduler) rebalance(d *plan.Draft) {
	if s.making.resize > d.Now() {
		return
	}
	s.making.resize = unit.Never
	if s.making.elastic == 0 {
		return
	}
	s.making.resize = d.Now().Add(resizeEvery)
	for id := range plan.RunID(d.RunSlots()) {
		r := d.Run(id)
		if r.Status != plan.Running || s.parts.Sharer != nil && r.Terms.Share.Guest != plan.None || !d.Shape(r.Job).Elastic() || d.Now().Sub(r.Began) < leftAlone || s.stays(r.Job) {
			continue
		}
		shape := d.Shape(r.Job)
		want := s.want(d.View, r.Job, shape)
		reason := plan.Reason{Code: plan.Rebalanced, A: int64(r.Workers), B: int64(want)}
		switch {
		case want == r.Workers && s.able.mover != nil && s.able.mover.Moves(d.View, r.Job):
			reason = plan.Reason{Code: plan.Moved}
		case want == r.Workers || want > r.Workers && !roomFor(d.View, shape, want-r.Workers):
			continue
		}
		holds := avoiding(d.View, r.Job)
		if want > r.Workers && !roomBeside(d.View, shape, want-r.Workers, holds) {
			continue // what is free is what it left
		}
		s.again(d, id, &allocate.Wish{Job: r.Job, Workers: want, Reason: reason}, func() { d.Hold(holds) })
	}
}

// again ends a run and starts its job as is wished, in a start that waits for the end, with what else is
// to be kept out of it held. Where there is no room the run goes on.
func (s *Scheduler) again(d *plan.Draft, run plan.RunID, w *allocate.Wish, hold func()) bool {
	mark, job := d.Mark(), w.Job
	s.claims.Discharge(job)
	d.Stop(run, w.Reason, d.Job(job).Checkpoint.Load)
	hold()
	fits := s.fits(d, w, w.Workers)
	if d.Unhold(); !fits {
		d.Rollback(mark)
		s.claims.Charge(d.View, job)
		return false
	}
	s.claims.Charge(d.View, job)
	s.drop(d.View, job)
	s.fileRunning(d.View, job)
	s.evicted(d)
	s.reopenRoomy(d.View) // what it gave up may be what others wait for
	return true
}
