package server

import (
	"net/http"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer/progress"
)

// getPlan tells which pipeline plan a job runs by, what is predicted of it, and what the job
// has measured in this attempt.
func (s *Server) getPlan(w http.ResponseWriter, r *http.Request) error {
	var out view.Plan
	err := s.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) { out = view.PlanOf(v, info, id) })
	if err != nil {
		return err
	}
	out.Offered(s.config.Plan)
	if out.Schedule != "" {
		out.Measured = s.measured(out.Job, out.Attempt, &out.Pipeline)
	}
	return answer(w, out)
}

// measured adds to a job's plan how long its step took, and returns what the job wrote of it in
// this attempt; nil is nothing, or nothing as it should. It reads a file: not to be called
// inside a query.
func (s *Server) measured(job string, attempt int32, p *view.Pipeline) *progress.Timings {
	if p == nil || s.config.Logs == nil {
		return nil
	}
	t, err := progress.ReadTimings(supervise.TimingsPath(s.config.Logs(job, attempt, 0)))
	if err != nil {
		return nil
	}
	p.Measure(&t)
	return &t
}
