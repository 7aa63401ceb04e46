package room

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/schedule/victims"
)

// How runs are moved for a job that does not fit though enough is free in pieces, where the
// composition has a policy for that. Everything is one decision: they are told to stop, the job
// is promised their room and they are promised another place, each start waiting for those whose
// room it takes; what that costs is known before, and more than the policy allows is not done.

// clearing is who may be moved for the job that is tried.
type clearing struct {
	*owners
	hand      *hand
	grounds   *Grounds
	runs      []victims.Candidate
	late      []unit.Duration // by candidate: what a move costs it of its running time
	elsewhere moves.Elsewhere
	looked    int64 // turns of the draft, counted from 1, that it knows
	chooser   victims.Cheapest
	order     []int
}

// may reports whether runs may be moved so that jobs fit.
func (c *clearing) may() bool { return c.parts.Moves.Most > 0 && c.round == nil }

// scattered reports whether as much is free, in pieces, as a job takes at least, where runs may be
// moved to make one of them.
func (c *clearing) scattered(v plan.View, shape *plan.Shape) bool {
	return c.may() && shape.Devices > 0 && v.Room().FreeMilli(shape.Models) >= shape.Milli(shape.Least())
}

// clear moves runs so that a job fits, and starts it. It returns the size.
func (c *clearing) clear(d *plan.Draft, w *allocate.Wish) int32 {
	if !c.may() || w.Slots != nil || d.Ended(w.Job) != nil {
		return 0
	}
	shape := *d.Shape(w.Job)
	n := shape.Least()
	if shape.Models, _ = d.MayTake(&c.claims.Ledger, w.Job, shape.Models, shape.Milli(n)); !c.scattered(d.View, &shape) {
		return 0
	}
	why := c.hand.why
	budget := c.parts.Moves.Budget(c.agenda.Length(d.View, w.Job, n), shape.Milli(n))
	c.findMovable(d, &shape, budget)
	chosen, ok := c.chooser.Choose(victims.Input{View: d.View, Candidates: c.runs, Need: allocate.Need{Job: w.Job, Attempt: d.Job(w.Job).Attempt, Workers: n, Shape: &shape}},
		func(chosen []int) bool { return c.affords(chosen, budget) && c.tryMoves(d, w, n, chosen) })
	if c.hand.why = why; !ok || len(chosen) == 0 || !c.moveFor(d, w, n, chosen) {
		return 0
	}
	for _, i := range c.order {
		c.files.Drop(d.View, c.runs[i].Job)
		c.files.FileRunning(d.View, c.runs[i].Job)
	}
	return n
}

// findMovable lists the runs that a move within a budget is open to, by job: on devices that a
// shape may use, and with a place elsewhere.
func (c *clearing) findMovable(d *plan.Draft, shape *plan.Shape, budget int64) {
	c.runs, c.late = c.runs[:0], c.late[:0]
	if now := d.Turns() + 1; c.looked != now {
		c.elsewhere.Forget()
		c.looked = now
	}
	v := d.View
	moves.Movable(v, func(id plan.RunID) {
		r := v.Run(id)
		lost, restart, price := victims.Price(v, id)
		if price > budget || c.parts.Moves.Rests(v.Now().Sub(r.Began), lost+restart) || c.grounds.Stays(r.Job) || r.Began == v.Now() {
			return
		}
		if model := moves.ModelOf(v, id); shape.Models&(1<<model) != 0 && c.elsewhere.Has(v, id, model) {
			c.runs = append(c.runs, victims.Candidate{Job: r.Job, Run: id, Price: price})
		}
	})
	slices.SortFunc(c.runs, func(a, b victims.Candidate) int { return int(a.Job - b.Job) })
	for _, x := range c.runs {
		lost, restart, _ := victims.Price(v, x.Run)
		c.late = append(c.late, lost+restart)
	}
}

// affords reports whether so many may be moved at what they cost together.
func (c *clearing) affords(chosen []int, budget int64) bool {
	for _, i := range chosen {
		if budget -= c.runs[i].Price; budget < 0 {
			return false
		}
	}
	return len(chosen) <= c.parts.Moves.Most
}

// tryMoves is moveFor, taken back.
func (c *clearing) tryMoves(d *plan.Draft, w *allocate.Wish, n int32, chosen []int) bool {
	mark := d.Mark()
	defer d.Rollback(mark)
	return c.moveFor(d, w, n, chosen)
}

// moveFor stops the chosen, starts the job and then the chosen elsewhere, those first that are
// hardest to place. It leaves all as it was where one of them does not fit.
func (c *clearing) moveFor(d *plan.Draft, w *allocate.Wish, n int32, chosen []int) bool {
	mark := d.Mark()
	for _, i := range chosen {
		d.Stop(c.runs[i].Run, plan.Reason{Code: plan.Defragmented, A: int64(w.Job)}, c.late[i])
	}
	c.order = append(c.order[:0], chosen...)
	milli := func(i int) int64 { return d.Shape(c.runs[i].Job).Milli(d.Run(c.runs[i].Run).Workers) }
	slices.SortStableFunc(c.order, func(a, b int) int { return cmp.Compare(milli(b), milli(a)) })
	ok := c.hand.begins(d, w, n) // beside those who are moved, who hold what they held
	for k := 0; ok && k < len(c.order); k++ {
		ok = c.goesElsewhere(d, c.runs[c.order[k]], w.Job)
	}
	if !ok {
		d.Rollback(mark)
	}
	return ok
}

// goesElsewhere starts a run that is moved for a job in another place, as large and on the same model.
func (c *clearing) goesElsewhere(d *plan.Draft, x victims.Candidate, by plan.JobID) bool {
	there := allocate.Wish{Job: x.Job, Workers: d.Run(x.Run).Workers, Models: 1 << moves.ModelOf(d.View, x.Run), Reason: plan.Reason{Code: plan.Defragmented, A: int64(by)}}
	c.claims.Count(x.Job, -1)
	ok := c.hand.begins(d, &there, there.Workers)
	c.claims.Count(x.Job, 1)
	return ok && !d.Again(d.Ended(x.Job), d.Job(x.Job).Run)
}
