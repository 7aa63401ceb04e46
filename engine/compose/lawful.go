package compose

import (
	"slices"

	"github.com/musterdl/muster/plan"
)

// What of the law of a commit, plan.View.Law, can be seen only when all is decided.

// untilLawful lets act decide; where that ends runs in vain, or against the law, it is taken back, and act decides
// again, while those runs go on as they are.
func (s *Scheduler) untilLawful(d *plan.Draft, act func()) {
	mark, from := d.Mark(), len(d.Changes())
	loops, retry, unprotected, resize := s.room.Loops.Remember(), s.room.Retry, s.claims.Wake(), s.making.resize
	for {
		act()
		var stay []plan.JobID
		for _, x := range s.judge.Vain(d.View, d.Changes()[from:]) {
			stay = append(stay, x.Change.Job)
		}
		if s.round != nil {
			stay = append(stay, s.round.Unlawful(d, d.Changes()[from:])...)
		}
		if !s.room.Stay(stay...) {
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
		s.room.Again()
		s.making.resize = resize
		s.room.Retry = retry // what was to be tried again was of that decision
		s.claims.SetWake(unprotected)
	}
}

// goBack files those again about whom a decision was taken back, and forgets the rest of it.
func (s *Scheduler) goBack(d *plan.Draft, jobs []plan.JobID, loops []byte) {
	s.files.RecallAside(d.View)
	slices.Sort(jobs)
	for _, job := range slices.Compact(jobs) {
		if s.files.Drop(d.View, job); d.Job(job).Run != plan.None {
			s.files.FileActive(d.View, job)
		} else {
			s.files.File(d.View, job)
		}
	}
	s.lines.ReopenAll()
	s.books.Open(d)
	if err := s.room.Loops.Recall(loops); err != nil {
		panic("compose: the memory of displacements cannot be read back: " + err.Error())
	}
	s.lines.NextPass()
	s.newBorrower = false
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
		if in := s.lines.ClassOf(c.Job); s.lines.Runs(c.Job) || in != nil && in.Guest {
			s.files.Drop(d.View, c.Job)
			s.files.File(d.View, c.Job)
		}
	}
}
