package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
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
	s.lines.pass++
	s.forgetKeptOut()
	for {
		c, next := s.best()
		if c < 0 {
			s.recallPassed(d)
		}
		if c < 0 && s.claims.newBorrower {
			s.claims.newBorrower = false
			s.reopenTakers(d.View)
			s.lines.pass++
			continue
		}
		if c < 0 && (s.claimed(d) || s.putOff(d)) {
			s.lines.pass++
			continue
		}
		if c < 0 && s.letIn() {
			continue
		}
		if c < 0 {
			return
		}
		it := s.lines.classes[c].waiting.items[0]
		s.making.why, s.making.narrowed, s.making.held = plan.Reason{}, false, false
		ahead := s.ahead(d.View, s.lines.classes[c].leaf, it)
		if ahead >= 0 && s.shortFirst() && s.lines.home[ahead] >= 0 && !s.lines.classes[s.lines.home[ahead]].isBlocked() {
			ahead = plan.None // whom it passes would fit, and takes longer
		}
		if s.placed(d, it, ahead, next) {
			s.evicted(d)
			continue
		}
		if d.Job(it.job).Run != plan.None { // a guest goes on as it does
			s.block(&s.lines.classes[c])
			continue
		}
		if s.reserve(d, it.job) {
			continue // its place is this moment: it may fit now that it is its own
		}
		if s.making.why.Code == plan.NoReason && !s.making.narrowed && !s.rules.Preempt && !s.rules.Strict && s.claims.tree.Shared() {
			if s.making.held {
				s.keepOut(d, it.job, s.lines.classes[c].shape)
			} else {
				s.crowd(d, s.lines.classes[c].shape)
			}
		}
		if s.setAside(d, it.job) {
			continue
		}
		shorter := s.nextShorter(d, c)
		if shorter < 0 {
			s.block(&s.lines.classes[c])
		}
		s.explain(d, it.job, ahead, plan.Reason{})
		s.passOverUntil(d, c, shorter)
	}
}

// ahead returns the best-ranked job that waits in a leaf if it ranks before another,
// which then passes it.
func (s *Scheduler) ahead(v plan.View, leaf int32, it item) plan.JobID {
	s.head(leaf)
	first := it
	if front := &s.claims.tree.heads[leaf].front; front.job != it.job && front.before(&it) {
		first = *front
	}
	for _, o := range s.making.passed {
		if j := v.Job(o.job); s.claims.tree.leaf(v, &j) == leaf && o.before(&first) {
			first = o
		}
	}
	if first.job == it.job {
		return plan.None
	}
	return first.job
}

// best returns the class whose best job is next among those worth a try, and the
// runner-up's job for the dossier: of the queue that the tree puts first.
func (s *Scheduler) best() (class int, next plan.JobID) {
	for {
		leaf := s.claims.tree.first(s)
		if leaf < 0 {
			return -1, plan.None
		}
		if class, next = s.bestOf(leaf); class >= 0 {
			return class, next
		}
		s.claims.tree.heads[leaf].closed = s.lines.pass
	}
}

// bestOf returns the class of a leaf whose best job ranks first, and the runner-up's
// job for the dossier. Under a strict order nobody passes a blocked class.
func (s *Scheduler) bestOf(leaf int32) (class int, next plan.JobID) {
	class, next = s.head(leaf), plan.None
	if class < 0 || !s.parts.Explain {
		return class, next
	}
	var second item
	consider := func(it item) {
		if next == plan.None || it.before(&second) {
			second, next = it, it.job
		}
	}
	for _, i := range s.claims.tree.heads[leaf].classes {
		if c := &s.lines.classes[i]; int(i) != class && len(c.waiting.items) > 0 && (!c.isBlocked() || s.rules.Strict) {
			consider(c.waiting.items[0])
		}
	}
	// The next of the same shape stands right below the best in its heap.
	same := s.lines.classes[class].waiting.items
	for _, it := range same[1:min(3, len(same))] {
		consider(it)
	}
	return class, next
}

// head returns the class of a leaf whose best job ranks first, or none.
func (s *Scheduler) head(leaf int32) int {
	x := &s.claims.tree.heads[leaf]
	if x.headed {
		return int(x.head)
	}
	var first, front *item
	class := plan.None
	short := s.shortFirst()
	for _, i := range x.classes {
		c := &s.lines.classes[i]
		if len(c.waiting.items) == 0 {
			continue
		}
		it := &c.waiting.items[0]
		if front == nil || it.before(front) {
			front = it
		}
		if c.isBlocked() && !s.rules.Strict {
			continue
		}
		if step := s.lines.classes[max(0, class)].step; first == nil || short && c.step < step || (!short || c.step == step) && it.before(first) {
			class, first = int(i), it
		}
	}
	if front != nil {
		x.front = *front
	}
	if class >= 0 && s.lines.classes[class].isBlocked() {
		class = plan.None
	}
	x.head, x.headed = int32(class), true
	return class
}

// shortFirst reports whether those who wait pass each other in order of how long they are likely to
// take. Where better ranks displace others that would be undone at once.
func (s *Scheduler) shortFirst() bool {
	return s.parts.Reserve.Foresight != nil && !s.rules.Preempt && !s.rules.Strict
}

// placed starts the next job of an order at the size it should have.
func (s *Scheduler) placed(d *plan.Draft, it item, ahead, next plan.JobID) bool {
	shape := d.Shape(it.job)
	if s.hopeless(d.View, &it, shape) {
		return false
	}
	w := &s.making.wish
	*w = allocate.Wish{Job: it.job, Workers: s.want(d.View, it.job, shape)}
	if until, had := s.repairedBy(d.View, it.job); until > d.Now() {
		w.Workers = max(w.Workers, had) // whatever its sizer would have it begin with now
	}
	w.Reason = plan.Reason{Code: plan.Fits, A: shape.Milli(w.Workers)}
	if ahead != plan.None {
		w.Reason = plan.Reason{Code: plan.Backfilled, A: int64(ahead)}
	}
	var n int32
	var took bool
	if d.Job(it.job).Run != plan.None {
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
	leaf := s.claims.tree.leaf(d.View, &j)
	gave := d.Ended(w.Job) // who gave way takes nothing in the same decision, unless it was by rank and takes by rank
	if gave != nil && gave.Reason.Code == plan.Moved {
		gave = nil // it was a guest, and goes on as one if it gets nothing
	}
	for n := w.Workers; n > 0 && gave == nil; n = s.smaller(d.View, w, n) {
		claims := s.claims.tree.Shared() && s.claims.tree.entitled(leaf, shape.Models, shape.Milli(n), j.Priority) && s.mayTakeBack(d.View, shape, j.Priority)
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
	return s.parts.Sizer.Want(v, job, allocate.Crowd{Active: s.lines.active, Devices: int64(v.Devices())})
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
		if milli = 0; s.claims.tree.Bounds() && d.Job(w.Share.Guest).Run == plan.None {
			return false // without a host it would hold what nobody counts
		}
	}
	models, bar := d.MayTake(&s.claims.tree.Ledger, job, models, milli)
	if bar.Kind != queue.NoBar && models == 0 {
		s.making.why = plan.Barred(bar)
		return false
	}
	if models != shape.Models {
		s.making.narrow = *shape
		s.making.narrow.Models = models
		shape, s.making.narrowed = &s.making.narrow, true
	}
	if w.Slots == nil && !guest(w) && !roomFor(d.View, shape, n) && !s.finds(d.View, job) {
		return false
	}
	holds := s.agenda.Holds(moment(d), job, n)
	s.making.held = !s.agenda.Empty()
	if w.Slots == nil && !guest(w) && !roomBeside(d.View, shape, n, holds) && !s.finds(d.View, job) {
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
		d.Note(plan.Scheduling, int64(it.job), int64(next), it.key[0], lost)
	}
	j := d.Job(it.job)
	leaf := s.claims.tree.leaf(d.View, &j)
	over := s.claims.tree.Shared() && s.claims.tree.OverGuarantee(leaf)
	s.drop(d.View, it.job)
	s.fileRunning(d.View, it.job)
	if s.agenda.Fulfil(it.job) {
		s.reopenRoomy(d.View) // it may have started elsewhere than it claimed
	}
	s.claims.newBorrower = s.claims.newBorrower || s.claims.tree.Shared() && !over && s.claims.tree.OverGuarantee(leaf)
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
	s.discharge(job)
	d.Stop(run, w.Reason, d.Job(job).Checkpoint.Load)
	hold()
	fits := s.fits(d, w, w.Workers)
	if d.Unhold(); !fits {
		d.Rollback(mark)
		s.charge(d.View, job)
		return false
	}
	s.charge(d.View, job)
	s.drop(d.View, job)
	s.fileRunning(d.View, job)
	s.evicted(d)
	s.reopenRoomy(d.View) // what it gave up may be what others wait for
	return true
}
