package server

import (
	"net/http"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

// getWhy says why a job is where it is.
func (s *Server) getWhy(w http.ResponseWriter, r *http.Request) error {
	var why view.Why
	var about plane.JobInfo
	err := s.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) {
		about = info
		x := s.veil(access.From(r.Context()))
		said := view.WhyOf(v, x.info(info), id, s.site(v))
		said.Words = s.withComing(v, id, said.Words)
		if v.Job(id).Phase.Waits() {
			said.Detail = append(said.Detail, s.config.Plane.Known(id)...)
		}
		why = x.why(said)
	})
	if err != nil {
		return err
	}
	s.lastLines(r, why.Job, about, why.Failure)
	return answer(w, why)
}

// why shows that somebody holds what a job waits for, and who only where the identity
// sees that job.
func (x veil) why(w view.Why) view.Why {
	if x.all {
		return w
	}
	w.Words, w.Tried.Words = x.text(w.Words), x.text(w.Tried.Words)
	for _, list := range [...][]string{w.Needs, w.Detail} {
		for i := range list {
			list[i] = x.text(list[i])
		}
	}
	for i := range w.Holders {
		h := &w.Holders[i]
		if name := x.name(h.Job); name != h.Job {
			h.Job, h.Queue = name, ""
		}
	}
	return w
}
