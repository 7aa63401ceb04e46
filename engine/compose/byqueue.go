package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// asking is a job under a joint decider that asks for room: for what is wished for it, or for
// what it would have by itself.
type asking struct {
	job    plan.JobID
	wished bool
	turn   int32 // in the order of the wishes, and then of those without one
}

// grantByQueue grants wishes as the tree puts their queues. In each queue those with a wish
// go first, in the order of the wishes, and then the others in the order in which they came:
// so a queue gets what it deserves, whatever the decider wishes.
func (s *Scheduler) grantByQueue(d *plan.Draft) {
	r, t := s.round, s.claims
	r.asking = append(r.asking, make([][]asking, t.Branches()-len(r.asking))...)
	turn := int32(0)
	ask := func(job plan.JobID, wished bool) {
		j := d.Job(job)
		leaf := t.LeafOf(d.View, &j)
		if turn++; len(r.asking[leaf]) == 0 {
			s.lines.Open(leaf, 1)
		}
		r.asking[leaf] = append(r.asking[leaf], asking{job, wished, turn})
	}
	for i := range r.wishes {
		w := &r.wishes[i]
		run := d.RunOf(w.Job)
		if goes := run != plan.None && s.goesOn(d.View, run); asksForRoom(w) && !goes {
			ask(w.Job, true)
		}
	}
	for _, id := range r.line {
		if s.lines.InLine(id) && !asksForRoom(r.of(id)) {
			ask(id, false)
		}
	}
	for leaf := s.nextLeaf(); leaf >= 0; leaf = s.nextLeaf() {
		next := r.asking[leaf][0]
		if r.asking[leaf] = r.asking[leaf][1:]; len(r.asking[leaf]) == 0 {
			s.lines.Open(leaf, -1)
		}
		s.grantTo(d, next)
	}
}

// goesOn reports whether a run computes as it is wished, which takes nothing.
func (s *Scheduler) goesOn(v plan.View, run plan.RunID) bool {
	status, _ := v.Works(run)
	return status == plan.Running && s.asItIs(v, run)
}

// grantTo grants one what it asks for. Where jobs are to gather, those without a wish only get
// what their queue is guaranteed.
func (s *Scheduler) grantTo(d *plan.Draft, a asking) {
	var w *allocate.Wish
	switch {
	case a.wished:
		w = s.round.of(a.job)
	case !s.round.gathers || s.claims.WithinGuarantee(d.View, a.job):
		w = s.own(d.View, a.job)
	}
	if (w == nil || !s.grant(d, w)) && !a.wished {
		s.passedOver(d, a.job)
	}
}
