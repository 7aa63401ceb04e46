package rounds

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
func (r *Round) grantByQueue(d *plan.Draft) {
	t := r.claims
	r.asking = append(r.asking, make([][]asking, t.Branches()-len(r.asking))...)
	turn := int32(0)
	ask := func(job plan.JobID, wished bool) {
		j := d.Job(job)
		leaf := t.LeafOf(d.View, &j)
		if turn++; len(r.asking[leaf]) == 0 {
			r.lines.Open(leaf, 1)
		}
		r.asking[leaf] = append(r.asking[leaf], asking{job, wished, turn})
	}
	for i := range r.wishes {
		w := &r.wishes[i]
		if asksForRoom(w) && !r.goesOn(d.View, d.RunOf(w.Job)) {
			ask(w.Job, true)
		}
	}
	for _, id := range r.line {
		if r.lines.InLine(id) && !asksForRoom(r.of(id)) {
			ask(id, false)
		}
	}
	for leaf := r.cycle.NextLeaf(); leaf >= 0; leaf = r.cycle.NextLeaf() {
		next := r.asking[leaf][0]
		if r.asking[leaf] = r.asking[leaf][1:]; len(r.asking[leaf]) == 0 {
			r.lines.Open(leaf, -1)
		}
		r.grantTo(d, next)
	}
}

// goesOn reports whether a run computes as it is wished, which takes nothing.
func (r *Round) goesOn(v plan.View, run plan.RunID) bool {
	if run == plan.None {
		return false
	}
	status, _ := v.Works(run)
	return status == plan.Running && r.asItIs(v, run)
}

// grantTo grants one what it asks for. Where jobs are to gather, those without a wish only get
// what their queue is guaranteed.
func (r *Round) grantTo(d *plan.Draft, a asking) {
	var w *allocate.Wish
	switch {
	case a.wished:
		w = r.of(a.job)
	case !r.gathers || r.claims.WithinGuarantee(d.View, a.job):
		w = own(d.View, a.job)
	}
	if (w == nil || !r.grant(d, w)) && !a.wished {
		r.passedOver(d, a.job)
	}
}
