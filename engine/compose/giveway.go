package compose

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// How the law of a commit is kept, plan.View.Law, that nobody's run is ended in vain. Whoever
// wished, and on whatever ground, a run gives way by giveWay to one start of the same
// decision that needs its room; and who gave way takes nothing from others in it, see place.
// What can be seen only when all is decided, untilLawful looks for.

// yielding is who may give way to the job that is tried, on which grounds, and who does.
type yielding struct {
	lows       []item // scratch: who may end, and has not
	candidates []victims.Candidate
	grounds    []plan.ReasonCode
	below      []item  // running jobs that are looked at and that rank below one that waits
	held       []int64 // by candidate: how much room its run would leave
	// Positions among the candidates: the lowest until there is room, those of them whose
	// room is not left over, those who give way and, while that is found out, those of them
	// who must.
	chosen, fewer, gave, needed []int
	judge                       plan.Judge
	// What the stop of each candidate means, where the order knows what completions cost; of those
	// who give way; and who would fill what is left of the room.
	loses, losers []law.Loser
	fills         []plan.JobID
}

// untilLawful lets act decide; where that ends runs in vain it is taken back, and act decides
// again, while those runs go on as they are.
func (s *Scheduler) untilLawful(d *plan.Draft, act func()) {
	mark, from := d.Mark(), len(d.Changes())
	loops, retry, unprotected := s.claims.loops.Remember(), s.roomRetry, s.claims.Wake()
	for s.making.stays = s.making.stays[:0]; ; {
		act()
		known := len(s.making.stays)
		for _, x := range s.claims.judge.Vain(d.View, d.Changes()[from:]) {
			if !s.stays(x.Change.Job) {
				s.making.stays = append(s.making.stays, x.Change.Job)
			}
		}
		if s.round != nil {
			s.making.stays = append(s.making.stays, s.round.unlawful(d, d.Changes()[from:], s.claims.loops)...)
		}
		if len(s.making.stays) == known {
			return
		}
		var jobs []plan.JobID
		for _, c := range d.Changes()[from:] {
			if c.Job != plan.None {
				jobs = append(jobs, c.Job)
			}
		}
		d.Rollback(mark)
		s.goBack(d, jobs, loops)
		s.roomRetry = retry // what was to be tried again was of that decision
		s.claims.SetWake(unprotected)
	}
}

// goBack files those again about whom a decision was taken back, and forgets the rest of it.
func (s *Scheduler) goBack(d *plan.Draft, jobs []plan.JobID, loops []byte) {
	s.recallAside(d)
	slices.Sort(jobs)
	for _, job := range slices.Compact(jobs) {
		if s.drop(d.View, job); d.Job(job).Run != plan.None {
			s.fileActive(d.View, job)
		} else {
			s.file(d.View, job)
		}
	}
	s.lines.ReopenAll()
	s.openCalendar(d)
	if err := s.claims.loops.Recall(loops); err != nil {
		panic("compose: the memory of displacements cannot be read back: " + err.Error())
	}
	s.lines.NextPass()
	s.claims.newBorrower = false
}

// stays reports whether a job's run goes on as it is, since to end it was in vain.
func (s *Scheduler) stays(job plan.JobID) bool { return slices.Contains(s.making.stays, job) }

// giveWay ends the runs of the chosen candidates and starts a job in their room; it ends no
// others than those whose end the start needs, who are listed in gave. What they held is no
// longer counted then. It reports whether there is such a start.
func (s *Scheduler) giveWay(d *plan.Draft, w *allocate.Wish, n int32, chosen []int) bool {
	mark, held := d.Mark(), s.promised(d, chosen)
	return s.stopFor(d, w, n, chosen) && s.onlyNeeded(d, w, n, mark, chosen, held)
}

// onlyNeeded goes on where the chosen have ended since the mark and the job has started: those
// whose end it does not need go on after all, which may take another start.
func (s *Scheduler) onlyNeeded(d *plan.Draft, w *allocate.Wish, n int32, mark plan.Mark, chosen []int, held map[int][]plan.Grant) bool {
	y := &s.claims.yielding
	y.gave = append(y.gave[:0], chosen...)
	for started := true; started; started = s.stopFor(d, w, n, y.gave) {
		y.needed = y.needed[:0]
		for _, i := range y.gave {
			if s.serves(d, w.Job, i, held[i]) {
				y.needed = append(y.needed, i)
			}
		}
		if len(y.needed) == len(y.gave) {
			return true
		}
		s.undo(d, mark, y.gave)
		y.gave, y.needed = y.needed, y.gave
	}
	return false
}

// promised is by candidate what those of the chosen have that were promised it and have not
// begun: a promise that is taken back leaves its room at once, and nobody waits for that.
func (s *Scheduler) promised(d *plan.Draft, chosen []int) (held map[int][]plan.Grant) {
	for _, i := range chosen {
		if run := s.claims.candidates[i].Run; d.Run(run).Status == plan.Promised {
			if held == nil {
				held = map[int][]plan.Grant{}
			}
			d.GrantsOf(run, func(g plan.Grant) { held[i] = append(held[i], g) })
		}
	}
	return held
}

// undo takes back what giveWay did since the mark.
func (s *Scheduler) undo(d *plan.Draft, mark plan.Mark, chosen []int) {
	d.Rollback(mark)
	s.countAll(chosen, 1)
}

// stopFor ends the runs of the chosen, which are no longer counted then, and starts the job; or
// it leaves all as it was.
func (s *Scheduler) stopFor(d *plan.Draft, w *allocate.Wish, n int32, chosen []int) bool {
	job, mark := w.Job, d.Mark()
	j, shape := d.Job(job), d.Shape(job)
	leaf, fair, lost := s.claims.LeafOf(d.View, &j), true, int64(0)
	for _, i := range chosen {
		c := &s.claims.candidates[i]
		lost = min(math.MaxInt64-c.Price, lost) + c.Price
		// What one gives back may bring its queue to its guarantee: the rest is its own.
		if s.claims.grounds[i] != plan.MadeWayFor {
			fair = fair && s.ground(d.View, leaf, job, c.Job, shape.Milli(n)) == s.claims.grounds[i]
		} else if s.claims.ChargedTo(c.Job) != leaf {
			fair = fair && !s.claims.Keeps(d.View, c.Job)
		}
		s.endFor(d, job, i)
	}
	if !fair || !s.takesRoom(d, w, n, plan.Reason{Code: plan.TookRoomOf, A: int64(len(chosen)), B: lost}) {
		s.undo(d, mark, chosen)
		return false
	}
	return true
}

// endFor ends the run of a candidate for a job; what it held is no longer counted.
func (s *Scheduler) endFor(d *plan.Draft, job plan.JobID, candidate int) {
	c := &s.claims.candidates[candidate]
	s.claims.Count(c.Job, -1)
	d.Stop(c.Run, plan.Reason{Code: s.claims.grounds[candidate], A: int64(job)}, d.Job(c.Job).Checkpoint.Load)
}

// takesRoom starts a job where others have just been stopped for it.
func (s *Scheduler) takesRoom(d *plan.Draft, w *allocate.Wish, n int32, why plan.Reason) bool {
	there := *w
	there.Reason = why
	if !guest(w) {
		there.Slots = nil
	}
	return s.fits(d, &there, n)
}

// serves reports whether the start that a draft ends with needs the end of a candidate's
// run: it takes its room, what was promised it or what it waits for, or the queues would not
// allow both.
func (s *Scheduler) serves(d *plan.Draft, job plan.JobID, candidate int, held []plan.Grant) (takes bool) {
	c, changes := &s.claims.candidates[candidate], d.Changes()
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
	s.claims.Count(c.Job, 1)
	models, _ := d.MayTake(&s.claims.Ledger, job, 1<<model, milli)
	s.claims.Count(c.Job, -1)
	return models == 0
}

// gaveWay files those who gave way to a job in the queue, or lets the elastic of them whose
// room was claimed go on with fewer workers in what is left.
func (s *Scheduler) gaveWay(d *plan.Draft, job plan.JobID) {
	gave := s.claims.yielding.gave
	s.countAll(gave, 1)
	for _, i := range gave {
		if claim := s.claims.grounds[i] == plan.Reclaimed || s.claims.grounds[i] == plan.Outranked; claim || !s.turns() {
			s.claims.loops.Note(job, s.claims.candidates[i].Job, d.Now())
		}
	}
	s.claims.Charge(d.View, job) // those that go on with less must leave it its own
	for _, i := range gave {
		c := s.claims.candidates[i]
		shape, had := d.Shape(c.Job), d.Run(c.Run).Workers
		s.drop(d.View, c.Job)
		again := false
		for size := smaller(shape, had); s.claims.grounds[i] != plan.MadeWayFor && size > 0 && shape.Elastic() && !again; size = smaller(shape, size) {
			again = s.fits(d, &allocate.Wish{Job: c.Job, Reason: plan.Reason{Code: plan.Rebalanced, A: int64(had), B: int64(size)}}, size)
		}
		if again {
			s.fileRunning(d.View, c.Job)
		} else {
			s.file(d.View, c.Job)
		}
	}
	s.claims.Discharge(job)
}

// countAll counts what candidates hold again, or no longer.
func (s *Scheduler) countAll(chosen []int, sign int64) {
	for _, i := range chosen {
		s.claims.Count(s.claims.candidates[i].Job, sign)
	}
}
