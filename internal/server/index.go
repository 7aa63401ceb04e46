package server

import (
	"slices"

	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/plan"
)

// index knows which jobs have not ended, so that listing them does not cost what
// has ever been submitted. It is used inside queries only, so by one goroutine.
type index struct {
	seen plan.JobID // jobs below were looked at
	live []plan.JobID
	over map[plan.Phase]int
}

func newIndex() index { return index{over: map[plan.Phase]int{}} }

// update takes in what happened since the last time.
func (x *index) update(v plan.View) {
	for ; x.seen < plan.JobID(v.Jobs()); x.seen++ {
		x.live = append(x.live, x.seen)
	}
	x.live = slices.DeleteFunc(x.live, func(id plan.JobID) bool {
		phase := v.Job(id).Phase
		if phase.Over() {
			x.over[phase]++
		}
		return phase.Over()
	})
}

// live are the jobs that have not ended, by id. It is called inside a query.
func (rd *reader) live(v plan.View) []plan.JobID {
	rd.jobs.update(v)
	return rd.jobs.live
}

// recount has jobs be looked at again that had ended, and may not have now.
func (rd *reader) recount() { rd.jobs = newIndex() }

// site lets the jobs that have not ended be asked about. It is called inside a query.
func (rd *reader) site(v plan.View) *explain.Site {
	return explain.Of(v, slices.Values(rd.live(v)))
}
