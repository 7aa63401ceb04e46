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
func (f *files) lastLines(r *http.Request, name string, info plane.JobInfo, failure *view.Failure) {
	if failure == nil || failure.Rank < 0 || f.logs == nil || !access.From(r.Context()).Steers(tenantOf(info), ownerOf(info)) {
		return
	}
	// What cannot be read any more is left out: the failure is told without it.
	failure.LastLines, _ = supervise.LastLines(f.logs(name, failure.Attempt, failure.Rank))
}
