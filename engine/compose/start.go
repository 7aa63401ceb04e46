package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/pipelines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/engine/room"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
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
		ahead := s.lines.Ahead(c.Leaf, it)
		if ahead >= 0 && s.shortFirst() {
			if other := s.lines.ClassOf(ahead); other != nil && !other.Blocked() {
				ahead = plan.None // whom it passes would fit, and takes longer
			}
		}
		switch got := s.placed(d, it, ahead, next); {
		case got.Workers > 0:
			s.evicted(d)
		case d.Job(it.Job).Run != plan.None: // a guest goes on as it does
			s.lines.Block(c)
		case s.books.Reserve(d, it.Job, got.Why): // its place is this moment: it may fit now that it is its own
		default:
			s.waitsWith(d, c, ahead, got.Why)
		}
	}
}

// waitsWith has the best job of a class wait, and with it those who would be tried in vain.
func (s *Scheduler) waitsWith(d *plan.Draft, c *lines.Class, ahead plan.JobID, why placing.Why) {
	job := c.Best().Job
	switch alone := why.Bar.Code != plan.NoReason || why.Narrowed || s.rules.Preempt || s.rules.Strict || !s.claims.Shared(); {
	case alone: // nothing follows for others of its shape
	case why.Held:
		s.files.KeepOut(d.View, c)
	default:
		s.files.Crowd(d, c.Shape)
	}
	if s.setAside(d, job) {
		return
	}
	shorter := s.files.NextShorter(d.View, c, why)
	if shorter < 0 {
		s.lines.Block(c)
	}
	s.explain(d, job, ahead, plan.Reason{})
	s.files.PassOverUntil(c, shorter)
}

// reopened has those tried again for whom what was started, claimed or put off has changed something, and
// reports whether there are any.
func (s *Scheduler) reopened(d *plan.Draft) bool {
	s.files.RecallPassed(d.View)
	switch {
	case s.newBorrower:
		s.newBorrower = false
		s.files.ReopenTakers(d.View)
	case !s.claimed(d) && !s.books.PutOff(d):
		return !s.agenda.Full() && s.lines.LetIn() // claims kept them out without a try
	}
	s.lines.NextPass()
	return true
}

// best returns the class whose best job is next among those worth a try, and the
// runner-up's job for the dossier: of the queue that the tree puts first.
func (s *Scheduler) best() (c *lines.Class, next plan.JobID) {
	for leaf := s.turns.Next(); leaf >= 0; leaf = s.turns.Next() {
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
func (s *Scheduler) placed(d *plan.Draft, it item, ahead, next plan.JobID) (got room.Got) {
	shape := d.Shape(it.Job)
	if s.room.Hopeless(d.View, &it, shape) {
		return got
	}
	w := &s.making.wish
	*w = allocate.Wish{Job: it.Job, Workers: s.want(d.View, it.Job, shape)}
	if until, had := s.reactions.RepairedBy(d.View, it.Job); until > d.Now() {
		w.Workers = max(w.Workers, had) // whatever its sizer would have it begin with now
	}
	w.Reason = plan.Reason{Code: plan.Fits, A: shape.Milli(w.Workers)}
	if ahead != plan.None {
		w.Reason = plan.Reason{Code: plan.Backfilled, A: int64(ahead)}
	}
	if d.Job(it.Job).Run != plan.None {
		got = s.moved(d, it, w)
	} else {
		got = s.room.Place(d, it, w)
	}
	if got.Workers > 0 {
		s.settled(d, it, got.Workers, w.Workers, next)
	}
	if got.Took {
		s.files.RecallPassed(d.View)
		s.files.ReopenRoomy(d.View) // what was taken may be more than was needed
	}
	return got
}

func (s *Scheduler) want(v plan.View, job plan.JobID, shape *plan.Shape) int32 {
	if !shape.Elastic() {
		return shape.Gang
	}
	return s.parts.Sizer.Want(v, job, allocate.Crowd{Active: s.lines.Active(), Devices: int64(v.Devices())})
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
	s.files.Drop(d.View, it.Job)
	s.files.FileRunning(d.View, it.Job)
	if s.agenda.Fulfil(it.Job) {
		s.files.ReopenRoomy(d.View) // it may have started elsewhere than it claimed
	}
	s.newBorrower = s.newBorrower || s.claims.Shared() && !over && s.claims.OverGuarantee(leaf)
}

// mayResize reports whether a run may be resized now: an elastic one with devices of its own that was left alone for some time, and
// that the law lets go.
func (s *Scheduler) mayResize(v plan.View, id plan.RunID, r *plan.Run) bool {
	guest := s.parts.Sharer != nil && r.Terms.Share.Guest != plan.None
	return r.Status == plan.Running && v.Shape(r.Job).Elastic() && !guest && v.Now().Sub(r.Began) >= leftAlone && !s.room.Stays(r.Job) && law.ChangesFrom(v, id) <= v.Now()
}

// rebalance resizes running elastic jobs whose sizer wants them another size, or elsewhere. Either
// is a stop and a start that waits for it.
func (s *Scheduler) rebalance(d *plan.Draft) {
	if s.making.resize > d.Now() {
		return
	}
	s.making.resize = unit.Never
	if s.files.Elastic == 0 {
		return
	}
	s.making.resize = d.Now().Add(resizeEvery)
	for id := range plan.RunID(d.RunSlots()) {
		r := d.Run(id)
		if !s.mayResize(d.View, id, &r) {
			continue
		}
		shape := d.Shape(r.Job)
		want := s.want(d.View, r.Job, shape)
		reason := plan.Reason{Code: plan.Rebalanced, A: int64(r.Workers), B: int64(want)}
		switch {
		case want == r.Workers && s.able.mover != nil && s.able.mover.Moves(d.View, r.Job):
			reason = plan.Reason{Code: plan.Moved}
		case want == r.Workers || want > r.Workers && !shape.HasRoom(d.View, want-r.Workers):
			continue
		}
		holds := pipelines.Avoiding(d.View, r.Job)
		if want > r.Workers && !shape.HasRoom(d.View, want-r.Workers, holds...) {
			continue // what is free is what it left
		}
		hands{s}.Again(d, id, &allocate.Wish{Job: r.Job, Workers: want, Reason: reason}, holds)
	}
}
