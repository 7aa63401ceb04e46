package server

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

// Bounds of a list of jobs.
const (
	usualListed = 1000
	mostListed  = 10_000
)

// find resolves what a path calls a job: its name, else its id. A job that the caller
// does not see is not there.
func (rd *reader) find(v plan.View, ref string, who *access.Identity) (plan.JobID, error) {
	id, there := rd.plane.Find(ref)
	if there && sees(who, rd.plane.Info(id)) {
		return id, nil
	}
	if n, err := strconv.ParseInt(ref, 10, 32); err == nil && n >= 0 && int(n) < v.Jobs() {
		if there = true; sees(who, rd.plane.Info(plan.JobID(n))) {
			return plan.JobID(n), nil
		}
	}
	return plan.None, missing(ref, who, there)
}

// about asks the plane about the job that the path names; of an array about the copy
// that speaks for it.
func (rd *reader) about(r *http.Request, f func(v plan.View, id plan.JobID, info plane.JobInfo)) error {
	return rd.named(r, func(v plan.View, ids jobs) {
		id := ids.speaker(v)
		f(v, id, rd.plane.Info(id))
	})
}

// getJob describes a job or an array; with ?wait=SECONDS it answers when that has ended or
// can never start as things are, or after that long.
func (f *files) getJob(w http.ResponseWriter, r *http.Request) error {
	wait, err := door.Number(r, "wait", 0, 0, 3600)
	if err != nil {
		return err
	}
	var job view.Job
	var about plane.JobInfo
	var name string
	look := func() error {
		return f.reader.named(r, func(v plan.View, ids jobs) {
			id := ids.speaker(v)
			name, about, job = v.Name(id), f.plane.Info(id), f.reader.described(v, ids, access.From(r.Context()))
		})
	}
	if err := look(); err != nil {
		return err
	}
	if wait == 0 || job.Settled() {
		return f.answerJob(w, r, name, about, job)
	}
	r, done, err := f.streams.begin(r)
	if err != nil {
		return err
	}
	defer done()
	changed, stop := f.plane.Watch()
	defer stop()
	deadline := time.After(time.Duration(wait) * time.Second)
	for {
		if err := look(); err != nil || job.Settled() { // also what happened before the watch began
			break
		}
		select {
		case <-changed:
			time.Sleep(50 * time.Millisecond) // others wait too
			continue
		case <-deadline:
		case <-f.streams.closing:
		case <-r.Context().Done():
			return r.Context().Err()
		}
		break
	}
	return f.answerJob(w, r, name, about, job)
}

// answerJob answers with a job, and with what its files tell of it: the name is that of the
// copy that speaks for it.
func (f *files) answerJob(w http.ResponseWriter, r *http.Request, name string, about plane.JobInfo, job view.Job) error {
	f.lastLines(r, name, about, job.Failure)
	f.measured(name, job.Attempt, job.Pipeline)
	return door.Answer(w, job)
}

func (rd *reader) getSteps(w http.ResponseWriter, r *http.Request) error {
	var steps view.Steps
	err := rd.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) {
		steps = rd.veil(access.From(r.Context())).steps(view.StepsOf(v, info, id))
	})
	if err != nil {
		return err
	}
	return door.Answer(w, steps)
}

// listJobs lists the jobs that have not ended: those with a run first, then by id.
// With ?all=1 those that have ended follow, the latest submitted first; ?phase=
// chooses by the word that is said of a job, or by its phase.
func (rd *reader) listJobs(w http.ResponseWriter, r *http.Request) error {
	limit, err := door.Number(r, "limit", usualListed, 1, mostListed)
	if err != nil {
		return err
	}
	wanted, err := states(r.URL.Query().Get("phase"))
	if err != nil {
		return err
	}
	all := r.URL.Query().Get("all") != "" && r.URL.Query().Get("all") != "0"
	var list view.Jobs
	err = rd.ask(r.Context(), func(v plan.View) {
		list = rd.list(v, access.From(r.Context()), choice{states: wanted, ended: all, limit: limit})
	})
	if err != nil {
		return err
	}
	return door.Answer(w, list)
}

// choice says which jobs are listed.
type choice struct {
	states []string // words and phases; none is any
	ended  bool     // also those that have ended
	limit  int
}

// takes reports whether a job is where the choice wants it.
func (c choice) takes(v plan.View, id plan.JobID) bool {
	return len(c.states) == 0 || slices.Contains(c.states, v.Job(id).Phase.String()) || slices.Contains(c.states, v.Standing(id))
}

// takesEnded reports whether any job that has ended is wanted.
func (c choice) takesEnded() bool {
	ended := c.ended
	for p := range plan.Refused + 1 {
		ended = ended || p.Over() && slices.Contains(c.states, p.String())
	}
	return ended
}

// list lists the jobs that an identity sees. It is called inside a query.
func (rd *reader) list(v plan.View, who *access.Identity, c choice) view.Jobs {
	site := rd.site(v)
	out := view.Jobs{Jobs: []view.Job{}, Quarantined: rd.quarantined(v)}
	x := rd.veil(who)
	add := func(id plan.JobID) {
		info := rd.plane.Info(id)
		switch {
		case !x.all && !sees(who, info):
		case len(out.Jobs) < c.limit:
			out.Jobs = append(out.Jobs, x.job(site, v, info, id))
		default:
			out.LeftOut++
		}
	}
	for _, active := range []bool{true, false} {
		for _, id := range rd.jobs.live {
			if (v.Job(id).Phase == plan.Active) == active && c.takes(v, id) {
				add(id)
			}
		}
	}
	ended := c.takesEnded()
	for id := plan.JobID(v.Jobs()) - 1; ended && id >= 0 && len(out.Jobs) < c.limit; id-- {
		if v.Job(id).Phase.Over() && c.takes(v, id) {
			add(id)
		}
	}
	return out
}

// states reads a list of words for where jobs stand, such as "running,held".
func states(list string) (out []string, err error) {
	if list == "" {
		return nil, nil
	}
	var known []string
	for p := range plan.Refused + 1 {
		known = append(known, p.String())
	}
	for s := range plan.Gone {
		known = append(known, s.String())
	}
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(known, name) {
			return nil, door.Refuse(http.StatusBadRequest, fmt.Sprintf("phase %q: expected one of %s", name, strings.Join(known, ", ")))
		}
		out = append(out, name)
	}
	return out, nil
}

func (rd *reader) listNodes(w http.ResponseWriter, r *http.Request) error {
	return tell(rd, w, r, func(v plan.View) view.Nodes {
		return view.Nodes{Nodes: rd.veil(access.From(r.Context())).nodes(view.NodesOf(v))}
	})
}

func (rd *reader) getCluster(w http.ResponseWriter, r *http.Request) error {
	return tell(rd, w, r, func(v plan.View) view.Cluster { return rd.veil(access.From(r.Context())).cluster(rd.cluster(v)) })
}

// cluster is called inside a query.
func (rd *reader) cluster(v plan.View) view.Cluster {
	c := view.ClusterOf(v, rd.plane.Strategy(), slices.Values(rd.live(v)), rd.jobs.over)
	c.NotHeld = rd.notHeld
	return c
}
