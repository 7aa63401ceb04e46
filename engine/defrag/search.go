package defrag

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/schedule/victims"
)

// search is the looking for one plan.
type search struct {
	d        *plan.Draft
	job      plan.JobID
	workers  int32
	shape    plan.Shape // of the models that its queues leave it
	placer   allocate.Placer
	budget   Budget
	terms    plan.Terms
	pipeline *plan.Pipeline

	calendar calendar.Calendar
	looked   int64      // turns of the draft that the calendar has seen
	claim    plan.Claim // the job's own
	rank     int        // of that claim; -1 without

	runs  []victims.Candidate
	late  map[plan.JobID]unit.Duration // what a move costs a job of its running time
	found []allocate.Candidate
	holds []plan.Hold
	order []int // of the moves
}

// search says what has to be placed, or why nothing can be.
func (p *Planner) search(s *plan.State, job plan.JobID) (*search, string) {
	v := s.View()
	j := v.Job(job)
	x := &search{job: job, shape: *v.Shape(job), placer: p.Placer, budget: p.Budget, terms: plan.DefaultTerms(), looked: -1}
	x.workers = smallest(&x.shape)
	name, milli := v.Name(job), x.shape.Milli(x.workers)
	switch {
	case j.Phase != plan.Waiting || !j.Admitted:
		return nil, fmt.Sprintf("%s is %s: it waits for no room", name, v.Standing(job))
	case x.shape.Devices == 0:
		return nil, name + " asks for no devices: runs are moved to make room on devices"
	}
	held := v.Ledgers().Held() // nothing that is moved changes it
	models, bar := v.MayTake(&held, job, x.shape.Models, milli)
	if models == 0 {
		return nil, fmt.Sprintf("%s may not start: %s", name, plan.Barred(bar).Words(v))
	}
	x.shape.Models = models
	if free := v.Room().FreeMilli(models); free < milli {
		return nil, fmt.Sprintf("%s wants %s, and %s are free for it: moving makes no more", name, devices(milli), unit.Milli(free))
	}
	if p.Settle != nil {
		x.terms, x.pipeline = p.Settle(v, job)
	}
	for _, c := range v.Claims() {
		if v.Job(c.Job).Phase == plan.Waiting {
			x.calendar.Insert(len(x.calendar.Claims()), c)
		}
	}
	x.calendar.Avoid = true
	x.calendar.SetWindows(v.Windows())
	return x, ""
}

// smallest is the smallest size that a job can have.
func smallest(shape *plan.Shape) int32 {
	if shape.Elastic() {
		return min(shape.Gang, shape.Sizes[0])
	}
	return shape.Gang
}

// open brings the calendar up to this moment.
func (x *search) open() {
	if !x.calendar.Empty() {
		x.updateCalendar()
		x.calendar.Revise(nil)
	}
	if x.rank = x.calendar.Find(x.job); x.rank >= 0 {
		x.claim = x.calendar.Claims()[x.rank]
	}
}

// updateCalendar tells the calendar the runs as the draft has them.
func (x *search) updateCalendar() {
	if x.looked != x.d.Turns() {
		x.calendar.Look(x.d.View, func(run plan.RunID) (unit.Time, bool) { return calendar.Ends(x.d.View, run), false })
		x.looked = x.d.Turns()
	}
}

// movable lists the runs that may be moved, by job, with what that costs.
func (x *search) movable() []victims.Candidate {
	v := x.d.View
	x.late = map[plan.JobID]unit.Duration{}
	var list []victims.Candidate
	moves.Movable(v, func(id plan.RunID) {
		job := v.Run(id).Job
		lost, restart, price := victims.Price(v, id)
		x.late[job] = lost + restart
		list = append(list, victims.Candidate{Job: job, Run: id, Price: price})
	})
	slices.SortFunc(list, func(a, b victims.Candidate) int { return int(a.Job - b.Job) })
	return list
}

// placeable are those of some runs for which there is another place as things are.
func (x *search) placeable(runs []victims.Candidate) []victims.Candidate {
	return slices.DeleteFunc(slices.Clone(runs), func(c victims.Candidate) bool {
		return !x.find(c.Job, x.shapeOf(c), x.d.Run(c.Run).Workers)
	})
}

// shapeOf is a running job's shape, on the model that it has.
func (x *search) shapeOf(c victims.Candidate) plan.Shape {
	shape := *x.d.Shape(c.Job)
	shape.Models = 1 << moves.ModelOf(x.d.View, c.Run)
	return shape
}

// choose looks for the cheapest of the runs that have to go.
func (x *search) choose(from []victims.Candidate) ([]int, bool) {
	x.runs = from
	var c victims.Cheapest
	return c.Choose(victims.Input{View: x.d.View, Candidates: from,
		Need: allocate.Need{Job: x.job, Attempt: x.d.Job(x.job).Attempt, Workers: x.workers, Shape: &x.shape}}, x.try)
}

// try reports whether the gang fits when the chosen are moved, and they fit again.
func (x *search) try(chosen []int) bool {
	if len(chosen) > x.budget.Moves || x.budget.Price > 0 && x.price(chosen) > x.budget.Price {
		return false
	}
	mark := x.d.Mark()
	defer x.d.Rollback(mark)
	return x.edit(chosen) && x.sort(chosen)
}

// price adds up without passing the largest number.
func (x *search) price(chosen []int) (sum int64) {
	for _, i := range chosen {
		sum += min(x.runs[i].Price, math.MaxInt64-sum)
	}
	return sum
}

// edit stops the chosen, starts the gang and then the chosen elsewhere, those first
// that are hardest to place.
func (x *search) edit(chosen []int) bool {
	for _, i := range chosen {
		x.d.Stop(x.runs[i].Run, plan.Reason{Code: plan.Defragmented, A: int64(x.job)}, x.late[x.runs[i].Job])
	}
	if !x.start(x.job, x.shape, x.workers, x.terms) {
		return false
	}
	if x.rank >= 0 { // it has what it claimed
		x.calendar.Drop(x.job)
		defer x.calendar.Insert(x.rank, x.claim)
	}
	x.order = append(x.order[:0], chosen...)
	slices.SortFunc(x.order, func(a, b int) int {
		r, s := &x.runs[a], &x.runs[b]
		k, l := x.d.Shape(r.Job), x.d.Shape(s.Job)
		return cmp.Or(cmp.Compare(l.Milli(1), k.Milli(1)), cmp.Compare(l.Milli(x.d.Run(s.Run).Workers), k.Milli(x.d.Run(r.Run).Workers)), int(r.Job-s.Job))
	})
	for _, i := range x.order {
		c := x.runs[i]
		r := x.d.Run(c.Run)
		if !x.start(c.Job, x.shapeOf(c), r.Workers, r.Terms) ||
			samePlaces(engine.PlacesOf(x.d.View, c.Run), engine.PlacesOf(x.d.View, x.d.Job(c.Job).Run)) {
			return false
		}
	}
	return true
}

// start promises a job a run where the placer likes it best.
func (x *search) start(job plan.JobID, shape plan.Shape, workers int32, terms plan.Terms) bool {
	if !x.find(job, shape, workers) {
		return false
	}
	_, why := x.d.Start(job, x.found[0].Slots, terms, plan.Reason{Code: plan.Fits})
	return why.Code == plan.NoReason
}

// find asks the placer, beside what is held for others: for claims, and because of
// windows that the job would run into.
func (x *search) find(job plan.JobID, shape plan.Shape, workers int32) bool {
	x.holds = x.holds[:0]
	if !x.calendar.Empty() {
		x.updateCalendar()
		until := x.d.Now().Add(x.late[job]).Add(calendar.Length(x.d.View, job, workers))
		x.holds = x.calendar.Holds(job, until, x.holds)
	}
	x.d.Hold(x.holds)
	x.found = x.placer.Place(x.d.View, allocate.Need{Job: job, Attempt: x.d.Job(job).Attempt, Workers: workers, Shape: &shape}, 1, x.found[:0])
	x.d.Unhold()
	return len(x.found) > 0
}

func samePlaces(a, b []engine.Place) bool {
	return slices.EqualFunc(a, b, func(a, b engine.Place) bool {
		return a.Node == b.Node && a.Workers == b.Workers && slices.Equal(a.On, b.On)
	})
}

// sort puts the moves in an order in which each start waits for stops of moves before it
// alone. There may be none, where runs would change places: then they cannot be moved one
// after the other.
func (x *search) sort(chosen []int) bool {
	stops := map[int64]plan.JobID{}
	waits := map[plan.JobID][]int64{}
	for _, c := range x.d.Changes() {
		if c.Verb == plan.Stop {
			stops[c.ID] = c.Job
		} else {
			waits[c.Job] = c.After
		}
	}
	x.order = x.order[:0]
	done := map[plan.JobID]bool{}
	for len(x.order) < len(chosen) {
		next := slices.IndexFunc(chosen, func(i int) bool {
			job := x.runs[i].Job
			return !done[job] && !slices.ContainsFunc(waits[job], func(change int64) bool {
				other, ours := stops[change]
				return ours && other != job && !done[other]
			})
		})
		if next < 0 {
			return false
		}
		done[x.runs[chosen[next]].Job] = true
		x.order = append(x.order, chosen[next])
	}
	return true
}

// none says why there is no plan.
func (x *search) none(movable int) string {
	name := x.d.Name(x.job)
	if movable == 0 {
		return fmt.Sprintf("no run can be moved to make room for %s: those that can save when asked, and are not protected, can be", name)
	}
	limit := ""
	if x.budget.Price > 0 {
		limit = fmt.Sprintf(" and %.3g device-hours", hours(x.budget.Price))
	}
	return fmt.Sprintf("no plan of at most %d moves%s was found that makes room for %s, with %d runs that can be moved", x.budget.Moves, limit, name, movable)
}
