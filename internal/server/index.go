package server

import (
	"iter"
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

// site lets the jobs that have not ended be asked about. It is called inside a query.
func (s *Server) site(v plan.View) *explain.Site {
	s.jobs.update(v)
	return explain.Of(v, s.jobs.all())
}

// all are the jobs that have not ended, by id.
func (x *index) all() iter.Seq[plan.JobID] { return slices.Values(x.live) }
