package server

import (
	"net/http"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer/progress"
)

// getPlan tells which pipeline plan a job runs by, what is predicted of it, and what the job
// has measured in this attempt.
func (f *files) getPlan(w http.ResponseWriter, r *http.Request) error {
	var out view.Plan
	err := f.reader.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) { out = view.PlanOf(v, info, id) })
	if err != nil {
		return err
	}
	out.Offered(f.plan)
	if out.Schedule != "" {
		out.Measured = f.measured(out.Job, out.Attempt, &out.Pipeline)
	}
	return door.Answer(w, out)
}

// measured adds to a job's plan how long its step took, and returns what the job wrote of it in
// this attempt; nil is nothing, or nothing as it should. It reads a file: not to be called
// inside a query.
func (f *files) measured(job string, attempt int32, p *view.Pipeline) *progress.Timings {
	if p == nil || f.logs == nil {
		return nil
	}
	t, err := progress.ReadTimings(supervise.TimingsPath(f.logs(job, attempt, 0)))
	if err != nil {
		return nil
	}
	p.Measure(&t)
	return &t
}
