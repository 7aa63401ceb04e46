package compose

import (
	"os"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/victims"
)

// displace takes room for a job from running jobs ranked below it: those that the victims
// part chooses, or, where the composition names none, the lowest first, and leaves those
// alone that need not go after all.
func (s *Scheduler) displace(d *plan.Draft, it item, w *allocate.Wish) bool {
	if s.parts.Victims != nil {
		return s.displaceChosen(d, it, w)
	}
	if low, found := s.worst(d.View); !found || !it.before(&low) {
		return false // nobody ranks below it
	}
	y := &s.claims.yielding
	y.candidates, y.grounds, y.chosen, y.held = y.candidates[:0], y.grounds[:0], y.chosen[:0], y.held[:0]
	shape, mark := d.Shape(it.job), d.Mark()
	// The idle part of a victim's device counts too, so this is the most there can be;
	// whether the job fits in it only the placer knows.
	need, free := shape.Milli(w.Workers), d.Room().FreeMilli(shape.Models)
	enough, most := false, free // with all that may end, before any of them has ended
	end := func(low item) {
		milli, may := s.mayDisplace(d.View, it.job, low.job, shape)
		if !may {
			return // its queue keeps it now that others of it have ended
		}
		i := len(y.chosen)
		y.chosen, y.held = append(y.chosen, i), append(y.held, milli)
		y.candidates = append(y.candidates, victims.Candidate{Job: low.job, Run: d.Job(low.job).Run})
		if of, ok := strategy.Can[schedule.Weigher](s.parts.Order); ok {
			if i == 0 {
				y.lost, y.cost = y.lost[:0], y.cost[:0]
			}
			lost, restart, _ := victims.Price(d.View, d.Job(low.job).Run)
			y.lost = append(y.lost, [2]unit.Duration{lost, restart})
			y.cost = append(y.cost, of.Cost(d.View, low.job))
		}
		y.grounds = append(y.grounds, plan.MadeWayFor)
		s.endFor(d, it.job, i)
		free += milli
		enough = free >= need && s.takesRoom(d, w, w.Workers, len(y.chosen))
	}
	y.lows = y.lows[:0]
	s.eachBelow(d.View, it, func(low item) bool {
		if milli, may := s.mayDisplace(d.View, it.job, low.job, shape); may {
			most += milli
			y.lows = append(y.lows, low)
		}
		if most < need {
			return true // to end them would be in vain
		}
		for i := 0; i < len(y.lows) && !enough; i++ {
			end(y.lows[i])
		}
		y.lows = y.lows[:0]
		return !enough
	})
	if !enough {
		s.undo(d, mark, y.chosen)
		return false
	}
	if y.spare(free - need); len(y.fewer) == len(y.chosen) {
		enough = s.onlyNeeded(d, w, w.Workers, mark, y.chosen, nil) // of the start that was tried last
	} else {
		s.undo(d, mark, y.chosen)
		enough = s.giveWay(d, w, w.Workers, y.fewer) || s.giveWay(d, w, w.Workers, y.chosen)
	}
	if !enough {
		return false
	}
	if !s.pays(d, w.Job) {
		s.undo(d, mark, y.gave)
		return false
	}
	s.gaveWay(d, w.Job)
	return true
}

// pays reports whether more completions are to be expected of a job and of who fills what is left than
// of those who gave way to it.
func (s *Scheduler) pays(d *plan.Draft, job plan.JobID) bool {
	of, ok := strategy.Can[schedule.Weigher](s.parts.Order)
	if !ok || os.Getenv("NOPAYS") != "" {
		return true
	}
	y := &s.claims.yielding
	cost := of.Cost(d.View, job)
	gain, loss, freed := 1/cost, 0., int64(0)
	alike, behind := 0., 0.
	for _, i := range y.gave {
		c := &y.candidates[i]
		lost, restart := y.lost[i][0], y.lost[i][1]
		loss += 1 / y.cost[i] * (1 + (lost+restart).Seconds()/cost)
		if a := of.Alike(d.View, job, c.Job); a > 0 {
			alike = max(alike, a)
			behind = max(behind, y.cost[i]+max(0, of.Ran(d.View, c.Job)-of.Ran(d.View, job)))
		}
		freed += d.Shape(c.Job).Milli(d.Run(c.Run).Workers)
	}
	if alike > 0 {
		gain = (1-alike)/cost + alike/behind
	}
	left := freed - d.Shape(job).Milli(d.Shape(job).Gang)
	for i := range s.lines.classes {
		c := &s.lines.classes[i]
		shape := d.ShapeOf(c.shape)
		for k, it := range c.waiting.items {
			if it.job == job || k > 32 {
				continue
			}
			if m := shape.Milli(shape.Gang); m <= left {
				left -= m
				gain += 1 / of.Cost(d.View, it.job)
			}
		}
	}
	return gain > loss
}

// eachBelow calls f with the running jobs ranked below one, the lowest first, until it
// returns false.
func (s *Scheduler) eachBelow(v plan.View, it item, f func(low item) bool) {
	s.claims.below = s.claims.below[:0]
	for on := true; on; {
		low, found := s.worst(v)
		if !found || !it.before(&low) {
			break
		}
		s.lines.running.remove(low.job)
		s.claims.below = append(s.claims.below, low)
		on = f(low)
	}
	for _, low := range s.claims.below {
		s.lines.running.push(low)
	}
}

// spare leaves those of the chosen out who need not go when so much is left over, the best
// ranked first; they are listed the lowest first.
func (y *yielding) spare(left int64) {
	y.fewer = append(y.fewer[:0], y.chosen...)
	for k := len(y.chosen) - 1; k >= 0; k-- {
		if y.held[k] <= left {
			left -= y.held[k]
			y.fewer = slices.Delete(y.fewer, k, k+1)
		}
	}
}

// displaceChosen lets the victims part choose among all that rank below a job.
func (s *Scheduler) displaceChosen(d *plan.Draft, it item, w *allocate.Wish) bool {
	shape := d.Shape(it.job)
	s.claims.candidates, s.claims.grounds = s.claims.candidates[:0], s.claims.grounds[:0]
	s.eachBelow(d.View, it, func(low item) bool {
		if _, may := s.mayDisplace(d.View, it.job, low.job, shape); may {
			run := d.Job(low.job).Run
			_, _, price := victims.Price(d.View, run)
			s.claims.candidates = append(s.claims.candidates, victims.Candidate{Job: low.job, Run: run, Price: price, Key: low.key})
			s.claims.grounds = append(s.claims.grounds, plan.MadeWayFor)
		}
		return true
	})
	slices.SortFunc(s.claims.candidates, func(a, b victims.Candidate) int { return int(a.Job - b.Job) })
	return s.takeFrom(d, w, w.Workers)
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

// circleTime is how long a run goes on before rank displaces it, where priority takes room
// too: ranks and priorities may go in a circle, and then each of its runs gets on by this.
const circleTime = unit.Minute

// ripe is when a run may be displaced: not before the order's minimum run, and one
// that cannot save when asked not before it has saved by itself, or else jobs could
// displace each other for ever and none get on. Never is not for now.
func (s *Scheduler) ripe(v plan.View, id plan.JobID) unit.Time {
	j := v.Job(id)
	wait := s.rules.MinimumRun
	if s.claims.tree.Shared() && s.claims.tree.Preempts(s.claims.charged[id].leaf) {
		wait = max(wait, circleTime) // who took room by priority may rank behind whom that one displaced
	}
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

// hasBegun reports whether a run has computed. Before that neither rank nor a round takes its place from it:
// for some others were stopped, and would have been for nothing.
func hasBegun(r *plan.Run) bool { return r.Status != plan.Promised && r.Status != plan.Starting }

// mayDisplace reports whether a run may be displaced for a job that ranks before it, and
// how much room it would leave. What other queues are guaranteed, and what runs of theirs
// are protected, rank does not take.
func (s *Scheduler) mayDisplace(v plan.View, job, id plan.JobID, shape *plan.Shape) (milli int64, ok bool) {
	run := v.Job(id).Run
	if run == plan.None || s.stays(id) {
		return 0, false // a guest that gave way a moment ago
	}
	r := v.Run(run)
	if !hasBegun(&r) {
		return 0, false // what was promised stands until it begins
	}
	if at := s.ripe(v, id); at > v.Now() {
		s.lines.roomRetry = min(s.lines.roomRetry, at)
		return 0, false
	}
	j := v.Job(job)
	leaf, theirs := s.claims.tree.leaf(v, &j), s.claims.charged[id].leaf
	if s.claims.tree.Shared() && v.Priority(id) > j.Priority && s.claims.tree.PriorityCounts(leaf, theirs) {
		return 0, false // it would take its room back at once, and so on
	}
	if leaf != theirs && s.keeps(v, id) {
		if at := s.protectedUntil(v, id); at > v.Now() {
			s.lines.roomRetry = min(s.lines.roomRetry, at)
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

// evicted queues the guests that have had to give way to what was started since it was
// last asked.
func (s *Scheduler) evicted(d *plan.Draft) {
	changes := d.Changes()
	for s.making.scanned = min(s.making.scanned, len(changes)); s.making.scanned < len(changes); s.making.scanned++ {
		c := &changes[s.making.scanned]
		if c.Verb != plan.Stop || d.Job(c.Job).Phase != plan.Waiting {
			continue
		}
		if home := s.lines.home[c.Job]; home == atRunning || home >= 0 && s.lines.classes[home].guest {
			s.drop(d.View, c.Job)
			s.file(d.View, c.Job)
		}
	}
}
