package server

import (
	"net/http"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer/progress"
)

// getPlan tells which pipeline plan a job runs by, what is predicted of it, and what the job
// has measured in this attempt.
func (s *Server) getPlan(w http.ResponseWriter, r *http.Request) error {
	var out view.Plan
	var made *plan.Pipeline
	var layers []workload.Layer
	err := s.about(r, func(v plan.View, id plan.JobID, _ plane.JobInfo) {
		out = view.Plan{Job: v.Name(id), Attempt: v.Job(id).Attempt}
		if run := v.Job(id).Run; run != plan.None && v.Run(run).Terms.Plan.ID != plan.None {
			found := v.Pipeline(v.Run(run).Terms.Plan.ID)
			made, layers = &found, compose.Request(*v.ProfileOf(id)).Layers
		}
	})
	if err != nil {
		return err
	}
	if made != nil {
		out.Predict(*made, layers)
	}
	if made != nil && s.config.Logs != nil {
		// What a job has not written, or not as it should, is not measured.
		if t, err := progress.ReadTimings(supervise.TimingsPath(s.config.Logs(out.Job, out.Attempt, 0))); err == nil {
			out.Measured = &t
		}
	}
	return answer(w, out)
}
