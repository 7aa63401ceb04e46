package server

import (
	"net/http"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

// getWhy says why a job is where it is.
func (f *files) getWhy(w http.ResponseWriter, r *http.Request) error {
	var why view.Why
	var about plane.JobInfo
	err := f.reader.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) {
		about = info
		x := f.reader.veil(access.From(r.Context()))
		said := view.WhyOf(v, x.info(info), id, f.reader.site(v))
		said.Words = f.reader.withComing(v, id, said.Words)
		if v.Job(id).Phase.Waits() {
			said.Detail = append(said.Detail, f.plane.Known(id)...)
		}
		why = x.why(said)
	})
	if err != nil {
		return err
	}
	f.lastLines(r, why.Job, about, why.Failure)
	return door.Answer(w, why)
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
