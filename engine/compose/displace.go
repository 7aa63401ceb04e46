package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// victim is a running job that may have to give way.
type victim struct {
	item
	milli   int64
	stays   bool // looked at, and left alone
	stopped bool
}

// displace takes room for a job from running jobs ranked below it: those that the victims
// part chooses, or, where the composition names none, the lowest first, and leaves those
// alone that need not go after all.
func (s *Scheduler) displace(d *plan.Draft, it item, n int32) bool {
	if s.parts.Victims != nil {
		return s.displaceChosen(d, it, n)
	}
	shape := d.Shape(it.job)
	// The idle part of a victim's device counts too, so this is the most there can be;
	// whether the job fits in it only the placer knows.
	need, free := shape.Milli(n), d.Room().FreeMilli(shape.Models)
	s.claims.victims = s.claims.victims[:0]
	mark := d.Mark()
	ok := false
	for !ok {
		w, found := s.worst(d.View)
		if !found || !it.before(w) {
			break
		}
		s.lines.running.remove(w.job)
		milli, may := s.mayDisplace(d.View, it.job, w.job, shape)
		s.claims.victims = append(s.claims.victims, victim{item: w, milli: milli, stays: !may})
		if !may {
			continue
		}
		if free += milli; free >= need {
			ok = s.stopAndPlace(d, it, n)
		}
	}
	if ok {
		s.spare(d, mark, it, n, free-need)
	} else {
		d.Rollback(mark)
	}
	s.refile(d, ok)
	return ok
}

// displaceChosen lets the victims part choose among all that rank below a job.
func (s *Scheduler) displaceChosen(d *plan.Draft, it item, n int32) bool {
	shape := d.Shape(it.job)
	s.claims.victims, s.claims.candidates, s.claims.grounds = s.claims.victims[:0], s.claims.candidates[:0], s.claims.grounds[:0]
	for {
		w, found := s.worst(d.View)
		if !found || !it.before(w) {
			break
		}
		s.lines.running.remove(w.job)
		_, may := s.mayDisplace(d.View, it.job, w.job, shape)
		if s.claims.victims = append(s.claims.victims, victim{item: w, stays: true}); may {
			run := d.Job(w.job).Run
			_, _, price := victims.Price(d.View, run)
			s.claims.candidates = append(s.claims.candidates, victims.Candidate{Job: w.job, Run: run, Price: price, Key: w.key})
		}
	}
	for _, v := range s.claims.victims {
		s.lines.running.push(v.item)
	}
	slices.SortFunc(s.claims.candidates, func(a, b victims.Candidate) int { return int(a.Job - b.Job) })
	for range s.claims.candidates {
		s.claims.grounds = append(s.claims.grounds, plan.MadeWayFor)
	}
	return s.takeFrom(d, &allocate.Wish{Job: it.job}, n)
}

// worst returns the running job ranked last, with its rank of this moment: ranks of
// running jobs may have improved since they were filed.
func (s *Scheduler) worst(v plan.View) (item, bool) {
	for len(s.lines.running.items) > 0 {
		top := s.lines.running.items[0]
		key, _ := s.parts.Order.Key(v, top.job)
		if key == top.key {
			return top, true
		}
		s.lines.running.rerank(item{key, top.job})
	}
	return item{}, false
}

// ripe is when a run may be displaced: not before the order's minimum run, and one
// that cannot save when asked not before it has saved by itself, or else jobs could
// displace each other for ever and none get on. Never is not for now.
func (s *Scheduler) ripe(v plan.View, id plan.JobID) unit.Time {
	j := v.Job(id)
	wait := s.rules.MinimumRun
	if !j.Checkpoint.OnRequest {
		if j.Checkpoint.Every == 0 {
			return unit.Never
		}
		wait = max(wait, j.Checkpoint.Every)
	}
	switch r := v.Run(j.Run); {
	case wait == 0:
		return v.Now()
	case r.Status == plan.Running:
		return r.Began.Add(wait)
	}
	return unit.Never
}

// mayDisplace reports whether a run may be displaced for a job that ranks before it, and
// how much room it would leave. What other queues are guaranteed, and what runs of theirs
// are protected, rank does not take.
func (s *Scheduler) mayDisplace(v plan.View, job, id plan.JobID, shape *plan.Shape) (milli int64, ok bool) {
	run := v.Job(id).Run
	if run == plan.None {
		return 0, false // a guest that gave way a moment ago
	}
	r := v.Run(run)
	if r.Status == plan.Promised && r.Since == v.Now() {
		return 0, false // what was decided a moment ago stands
	}
	if at := s.ripe(v, id); at > v.Now() {
		s.lines.patient = min(s.lines.patient, at)
		return 0, false
	}
	if j := v.Job(job); s.claims.tree.leaf(v, &j) != s.claims.charged[id].leaf && s.keeps(v, id) {
		if at := s.protectedUntil(v, &r); at > v.Now() {
			s.lines.patient = min(s.lines.patient, at)
		}
		return 0, false
	}
	v.GrantsOf(run, func(g plan.Grant) {
		if v.Allows(shape, g.Node) && v.Node(g.Node).Status == plan.Up {
			milli += int64(g.Reserve)
		}
	})
	return milli, milli > 0
}

func (s *Scheduler) stopAndPlace(d *plan.Draft, it item, n int32) bool {
	stopped := int64(0)
	for i := range s.claims.victims {
		v := &s.claims.victims[i]
		if v.stays {
			continue
		}
		stopped++
		if !v.stopped {
			v.stopped = true
			d.Stop(d.Job(v.job).Run, plan.Reason{Code: plan.MadeWayFor, A: int64(it.job)}, d.Job(v.job).Checkpoint.Load)
		}
	}
	return s.fits(d, &allocate.Wish{Job: it.job, Reason: plan.Reason{Code: plan.TookRoomOf, A: stopped}}, n)
}

// spare tries again without the victims whose room was not needed, best first; if
// the job cannot be placed then, all of them go.
func (s *Scheduler) spare(d *plan.Draft, mark plan.Mark, it item, n int32, left int64) {
	spared := false
	for i := range slices.Backward(s.claims.victims) {
		if v := &s.claims.victims[i]; !v.stays && v.milli <= left {
			left -= v.milli
			v.stays, spared = true, true
		}
	}
	if !spared {
		return
	}
	again := func() bool {
		d.Rollback(mark)
		for i := range s.claims.victims {
			s.claims.victims[i].stopped = false
		}
		return s.stopAndPlace(d, it, n)
	}
	if again() {
		return
	}
	for i := range s.claims.victims {
		s.claims.victims[i].stays = s.claims.victims[i].milli == 0
	}
	if !again() {
		panic("compose: a placement that was made cannot be made again")
	}
}

// evicted queues the guests that have had to give way to what was started since it was
// last asked.
func (s *Scheduler) evicted(d *plan.Draft) {
	changes := d.Changes()
	for s.making.scanned = min(s.making.scanned, len(changes)); s.making.scanned < len(changes); s.making.scanned++ {
		c := &changes[s.making.scanned]
		if c.Verb == plan.Stop && s.lines.home[c.Job] == atRunning && d.Job(c.Job).Phase == plan.Waiting {
			s.drop(d.View, c.Job)
			s.file(d.View, c.Job)
		}
	}
}

// refile puts the running jobs that were looked at back, and the stopped ones in
// the queue.
func (s *Scheduler) refile(d *plan.Draft, displaced bool) {
	for _, v := range s.claims.victims {
		if displaced && !v.stays {
			s.lines.home[v.job] = nowhere
			s.lines.active--
			if d.Shape(v.job).Elastic() {
				s.making.elastic--
			}
			s.discharge(v.job)
			s.file(d.View, v.job)
			continue
		}
		s.lines.running.push(v.item)
	}
}
