package server

import (
	"net/http"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/run/local/supervise"
)

// lastLines adds to how a job failed what its worker printed last, where the caller may read
// its log. It reads files: not to be called inside a query.
func (s *Server) lastLines(r *http.Request, name string, info plane.JobInfo, f *view.Failure) {
	if f == nil || f.Rank < 0 || s.config.Logs == nil || !access.From(r.Context()).Steers(tenantOf(info), ownerOf(info)) {
		return
	}
	// What cannot be read any more is left out: the failure is told without it.
	f.LastLines, _ = supervise.LastLines(s.config.Logs(name, f.Attempt, f.Rank))
}
