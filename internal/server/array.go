package server

import (
	"fmt"
	"iter"
	"net/http"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

// jobs are what a path names: one job, or the copies of an array.
type jobs struct {
	first plan.JobID
	count int32 // of copies; 0 is one job
}

// all yields them by id.
func (j jobs) all() iter.Seq[plan.JobID] {
	return func(yield func(plan.JobID) bool) {
		for id := j.first; id < j.first+plan.JobID(max(1, j.count)); id++ {
			if !yield(id) {
				return
			}
		}
	}
}

// speaker is the copy that tells most of how an array stands: the first that waits,
// else the first that has not ended, else the first that did not finish.
func (j jobs) speaker(v plan.View) plan.JobID {
	found := j.first
	best := 0
	for id := range j.all() {
		worth := 0
		switch p := v.Job(id).Phase; {
		case p.Waits():
			return id
		case !p.Over():
			worth = 2
		case p != plan.Finished:
			worth = 1
		}
		if worth > best {
			found, best = id, worth
		}
	}
	return found
}

// named asks the plane about what the path names.
func (rd *reader) named(r *http.Request, f func(v plan.View, ids jobs)) error {
	var missing error
	err := rd.ask(r.Context(), func(v plan.View) {
		ref, who := r.PathValue("job"), access.From(r.Context())
		id, err := rd.find(v, ref, who)
		if err == nil {
			f(v, jobs{first: id})
			return
		}
		missing = err
		if a, is := rd.plane.FindArray(ref); is && sees(who, rd.plane.Info(a.First)) {
			missing = nil
			f(v, jobs{a.First, a.Count})
		}
	})
	if err != nil {
		return err
	}
	return missing
}

// described describes a job or an array. It is called inside a query.
func (rd *reader) described(v plan.View, ids jobs, who *access.Identity) view.Job {
	id := ids.speaker(v)
	job := rd.veil(who).job(rd.site(v), v, rd.plane.Info(id), id)
	if ids.count > 0 {
		view.MakeArray(&job, v, ids.all(), rd.plane.Info(id).Spec.ArrayName())
	}
	return job
}

// oneOf refuses an array where one job is needed.
func oneOf(info plane.JobInfo, ref string) error {
	if w := info.Spec; w == nil || w.Copy == 0 || w.ArrayName() != ref {
		return nil
	}
	return door.Refuse(http.StatusBadRequest, fmt.Sprintf("%s is an array: name one of its copies, %s-0, %s-1, ...", ref, ref, ref))
}
