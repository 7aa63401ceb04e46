package room

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// yielding is who may give way to the job that is tried, on which grounds, and who does.
type yielding struct {
	*owners
	hand       *hand
	grounds    *Grounds
	candidates []victims.Candidate
	codes      []plan.ReasonCode // by candidate, the ground
	held       []int64           // by candidate: how much room its run would leave
	// Positions among the candidates: the lowest until there is room, those of them whose
	// room is not left over, those who give way and, while that is found out, those of them
	// who must.
	chosen, fewer, gave, needed []int
	loses                       []law.Loser // by candidate: what its stop means, where the order knows what completions cost
}

// forget begins with no candidates.
func (y *yielding) forget() {
	y.candidates, y.codes, y.chosen, y.held, y.loses = y.candidates[:0], y.codes[:0], y.chosen[:0], y.held[:0], y.loses[:0]
}

// add adds a candidate that may go on a ground.
func (y *yielding) add(c victims.Candidate, ground plan.ReasonCode) {
	y.candidates, y.codes = append(y.candidates, c), append(y.codes, ground)
}

// giveWay ends the runs of the chosen candidates and starts a job in their room; it ends no
// others than those whose end the start needs, who are listed in gave. What they held is no
// longer counted then. It reports whether there is such a start.
func (y *yielding) giveWay(d *plan.Draft, w *allocate.Wish, n int32, chosen []int) bool {
	mark, held := d.Mark(), y.promised(d, chosen)
	return y.stopFor(d, w, n, chosen) && y.onlyNeeded(d, w, n, mark, chosen, held)
}

// onlyNeeded goes on where the chosen have ended since the mark and the job has started: those
// whose end it does not need go on after all, which may take another start.
func (y *yielding) onlyNeeded(d *plan.Draft, w *allocate.Wish, n int32, mark plan.Mark, chosen []int, held map[int][]plan.Grant) bool {
	y.gave = append(y.gave[:0], chosen...)
	for started := true; started; started = y.stopFor(d, w, n, y.gave) {
		y.needed = y.needed[:0]
		for _, i := range y.gave {
			if y.serves(d, w.Job, i, held[i]) {
				y.needed = append(y.needed, i)
			}
		}
		if len(y.needed) == len(y.gave) {
			return true
		}
		y.undo(d, mark, y.gave)
		y.gave, y.needed = y.needed, y.gave
	}
	return false
}

// promised is by candidate what those of the chosen have that were promised it and have not
// begun: a promise that is taken back leaves its room at once, and nobody waits for that.
func (y *yielding) promised(d *plan.Draft, chosen []int) (held map[int][]plan.Grant) {
	for _, i := range chosen {
		if run := y.candidates[i].Run; d.Run(run).Status == plan.Promised {
			if held == nil {
				held = map[int][]plan.Grant{}
			}
			d.GrantsOf(run, func(g plan.Grant) { held[i] = append(held[i], g) })
		}
	}
	return held
}

// undo takes back what giveWay did since the mark.
func (y *yielding) undo(d *plan.Draft, mark plan.Mark, chosen []int) {
	d.Rollback(mark)
	y.countAll(chosen, 1)
}

// stopFor ends the runs of the chosen, which are no longer counted then, and starts the job; or
// it leaves all as it was.
func (y *yielding) stopFor(d *plan.Draft, w *allocate.Wish, n int32, chosen []int) bool {
	job, mark := w.Job, d.Mark()
	j, shape := d.Job(job), d.Shape(job)
	leaf, fair, lost := y.claims.LeafOf(d.View, &j), true, int64(0)
	for _, i := range chosen {
		c := &y.candidates[i]
		lost = min(math.MaxInt64-c.Price, lost) + c.Price
		// What one gives back may bring its queue to its guarantee: the rest is its own.
		if y.codes[i] != plan.MadeWayFor {
			fair = fair && y.grounds.ground(d.View, leaf, job, c.Job, shape.Milli(n)) == y.codes[i]
		} else if y.claims.ChargedTo(c.Job) != leaf {
			fair = fair && !y.claims.Keeps(d.View, c.Job)
		}
		y.endFor(d, job, i)
	}
	if !fair || !y.takesRoom(d, w, n, plan.Reason{Code: plan.TookRoomOf, A: int64(len(chosen)), B: lost}) {
		y.undo(d, mark, chosen)
		return false
	}
	return true
}

// endFor ends the run of a candidate for a job; what it held is no longer counted.
func (y *yielding) endFor(d *plan.Draft, job plan.JobID, candidate int) {
	c := &y.candidates[candidate]
	y.claims.Count(c.Job, -1)
	d.Stop(c.Run, plan.Reason{Code: y.codes[candidate], A: int64(job)}, d.Job(c.Job).Checkpoint.Load)
}

// takesRoom starts a job where others have just been stopped for it.
func (y *yielding) takesRoom(d *plan.Draft, w *allocate.Wish, n int32, why plan.Reason) bool {
	there := *w
	there.Reason = why
	if !placing.Guest(w) {
		there.Slots = nil
	}
	return y.hand.begins(d, &there, n)
}

// serves reports whether the start that a draft ends with needs the end of a candidate's
// run: it takes its room, what was promised it or what it waits for, or the queues would not
// allow both.
func (y *yielding) serves(d *plan.Draft, job plan.JobID, candidate int, held []plan.Grant) (takes bool) {
	c, changes := &y.candidates[candidate], d.Changes()
	d.GrantsOf(d.Job(job).Run, func(g plan.Grant) {
		takes = takes || slices.ContainsFunc(held, func(h plan.Grant) bool { return h.Node == g.Node && h.Device == g.Device })
	})
	if takes || held == nil && slices.Contains(changes[len(changes)-1].After, d.Run(c.Run).Change) {
		return true
	}
	model, milli := int32(plan.None), int64(0)
	d.GrantsOf(d.Job(job).Run, func(g plan.Grant) {
		if g.Device != plan.None {
			model, milli = d.Node(g.Node).Model, milli+int64(g.Reserve)
		}
	})
	if model == plan.None {
		return false
	}
	y.claims.Count(c.Job, 1)
	models, _ := d.MayTake(&y.claims.Ledger, job, 1<<model, milli)
	y.claims.Count(c.Job, -1)
	return models == 0
}

// gaveWay files those who gave way to a job in the queue, or lets the elastic of them whose
// room was claimed go on with fewer workers in what is left.
func (y *yielding) gaveWay(d *plan.Draft, job plan.JobID) {
	gave := y.gave
	y.countAll(gave, 1)
	for _, i := range gave {
		if claim := y.codes[i] == plan.Reclaimed || y.codes[i] == plan.Outranked; claim || !y.grounds.turns() {
			y.grounds.Loops.Note(job, y.candidates[i].Job, d.Now())
		}
	}
	y.claims.Charge(d.View, job) // those that go on with less must leave it its own
	for _, i := range gave {
		c := y.candidates[i]
		shape, had := d.Shape(c.Job), d.Run(c.Run).Workers
		y.files.Drop(d.View, c.Job)
		again := false
		for size := shape.Smaller(had); y.codes[i] != plan.MadeWayFor && size > 0 && shape.Elastic() && !again; size = shape.Smaller(size) {
			again = y.hand.begins(d, &allocate.Wish{Job: c.Job, Reason: plan.Reason{Code: plan.Rebalanced, A: int64(had), B: int64(size)}}, size)
		}
		if again {
			y.files.FileRunning(d.View, c.Job)
		} else {
			y.files.File(d.View, c.Job)
		}
	}
	y.claims.Discharge(job)
}

// countAll counts what candidates hold again, or no longer.
func (y *yielding) countAll(chosen []int, sign int64) {
	for _, i := range chosen {
		y.claims.Count(y.candidates[i].Job, sign)
	}
}

// letStay has those of the chosen go on after all whose end since the mark the start does not need, as so much
// room is left over. It reports whether there is such a start.
func (y *yielding) letStay(d *plan.Draft, w *allocate.Wish, mark plan.Mark, left int64) bool {
	if y.spare(left); len(y.fewer) == len(y.chosen) {
		return y.onlyNeeded(d, w, w.Workers, mark, y.chosen, nil) // of the start that was tried last
	}
	y.undo(d, mark, y.chosen)
	return y.giveWay(d, w, w.Workers, y.fewer) || y.giveWay(d, w, w.Workers, y.chosen)
}

// pays reports whether it pays that those end who gave way to a job, as far as the order knows what
// completions cost.
func (y *yielding) pays(d *plan.Draft, job plan.JobID) bool {
	if len(y.loses) == 0 {
		return true // it is no matter of rank, or nobody knows
	}
	var few [8]law.Loser // most are
	var fills [8]plan.JobID
	losers := few[:0]
	left := -d.Shape(job).Milli(d.Run(d.Job(job).Run).Workers)
	for _, i := range y.gave {
		losers = append(losers, y.loses[i])
		left += d.Shape(y.candidates[i].Job).Milli(d.Run(y.candidates[i].Run).Workers)
	}
	return law.Pays(d.View, y.parts.Weigher, job, y.fill(d.View, job, left, fills[:0]), losers)
}

// savesAt is when the first of those who gave way has saved by itself what its stop would lose now, so that it may pay
// then; Never where none would lose any.
func (y *yielding) savesAt(v plan.View) unit.Time {
	at := unit.Never
	for _, i := range y.gave {
		c := &y.candidates[i]
		lost, _, _ := victims.Price(v, c.Run)
		if every := v.Job(c.Job).Checkpoint.Every; lost > 0 && every > lost {
			at = min(at, v.Now().Add(every-lost))
		}
	}
	return at
}

// fill adds waiting jobs that would have room together in so much of it, beside one that is tried.
func (y *yielding) fill(v plan.View, beside plan.JobID, milli int64, into []plan.JobID) []plan.JobID {
	each := func(shape int32) int64 { return v.ShapeOf(shape).Milli(v.ShapeOf(shape).Gang) }
	y.lines.BestFirst(func(shape int32) bool { return each(shape) > 0 && each(shape) <= milli }, func(it *lines.Item) {
		if it.Job != beside {
			shape, _ := v.Kind(it.Job)
			into, milli = append(into, it.Job), milli-each(shape)
		}
	})
	return into
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

// weighLoss adds what the stop of the next candidate means, where the order knows what completions cost.
func (y *yielding) weighLoss(v plan.View, run plan.RunID) {
	if of := y.parts.Weigher; of != nil {
		y.loses = append(y.loses, law.Lose(v, of, run))
	}
}
