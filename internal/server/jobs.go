package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
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
func (s *Server) find(v plan.View, ref string, who *access.Identity) (plan.JobID, error) {
	id, there := s.config.Plane.Find(ref)
	if there && sees(who, s.config.Plane.Info(id)) {
		return id, nil
	}
	if n, err := strconv.ParseInt(ref, 10, 32); err == nil && n >= 0 && int(n) < v.Jobs() {
		if there = true; sees(who, s.config.Plane.Info(plan.JobID(n))) {
			return plan.JobID(n), nil
		}
	}
	return plan.None, missing(ref, who, there)
}

// about asks the plane about the job that the path names; of an array about the copy
// that speaks for it.
func (s *Server) about(r *http.Request, f func(v plan.View, id plan.JobID, info plane.JobInfo)) error {
	return s.named(r, func(v plan.View, ids jobs) {
		id := ids.speaker(v)
		f(v, id, s.config.Plane.Info(id))
	})
}

// getJob describes a job or an array; with ?wait=SECONDS it answers when that has ended or
// can never start as things are, or after that long.
func (s *Server) getJob(w http.ResponseWriter, r *http.Request) error {
	wait, err := number(r, "wait", 0, 0, 3600)
	if err != nil {
		return err
	}
	var job view.Job
	var about plane.JobInfo
	var name string
	look := func() error {
		return s.named(r, func(v plan.View, ids jobs) {
			id := ids.speaker(v)
			name, about, job = v.Name(id), s.config.Plane.Info(id), s.described(v, ids, access.From(r.Context()))
		})
	}
	if err := look(); err != nil {
		return err
	}
	if wait == 0 || job.Settled() {
		return s.answerJob(w, r, name, about, job)
	}
	r, done, err := s.openStream(r)
	if err != nil {
		return err
	}
	defer done()
	changed, stop := s.config.Plane.Watch()
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
		case <-s.closing:
		case <-r.Context().Done():
			return r.Context().Err()
		}
		break
	}
	return s.answerJob(w, r, name, about, job)
}

// answerJob answers with a job, and with what its files tell of it: the name is that of the
// copy that speaks for it.
func (s *Server) answerJob(w http.ResponseWriter, r *http.Request, name string, about plane.JobInfo, job view.Job) error {
	s.lastLines(r, name, about, job.Failure)
	s.measured(name, job.Attempt, job.Pipeline)
	return answer(w, job)
}

func (s *Server) getSteps(w http.ResponseWriter, r *http.Request) error {
	var steps view.Steps
	err := s.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) {
		steps = s.veil(access.From(r.Context())).steps(view.StepsOf(v, info, id))
	})
	if err != nil {
		return err
	}
	return answer(w, steps)
}

// listJobs lists the jobs that have not ended: those with a run first, then by id.
// With ?all=1 those that have ended follow, the latest submitted first; ?phase=
// chooses by the word that is said of a job, or by its phase.
func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", usualListed, 1, mostListed)
	if err != nil {
		return err
	}
	wanted, err := states(r.URL.Query().Get("phase"))
	if err != nil {
		return err
	}
	all := r.URL.Query().Get("all") != "" && r.URL.Query().Get("all") != "0"
	var list view.Jobs
	err = s.ask(r.Context(), func(v plan.View) {
		list = s.list(v, access.From(r.Context()), choice{states: wanted, ended: all, limit: limit})
	})
	if err != nil {
		return err
	}
	return answer(w, list)
}

// choice says which jobs are listed.
type choice struct {
	states []string // words and phases; none is any
	ended  bool     // also those that have ended
	limit  int
}

// list lists the jobs that an identity sees. It is called inside a query.
func (s *Server) list(v plan.View, who *access.Identity, c choice) view.Jobs {
	site := s.site(v)
	out := view.Jobs{Jobs: []view.Job{}}
	x := s.veil(who)
	add := func(id plan.JobID) {
		info := s.config.Plane.Info(id)
		switch {
		case !x.all && !sees(who, info):
		case len(out.Jobs) < c.limit:
			out.Jobs = append(out.Jobs, x.job(site, v, info, id))
		default:
			out.LeftOut++
		}
	}
	ended := c.ended
	for p := range plan.Refused + 1 {
		ended = ended || p.Over() && slices.Contains(c.states, p.String())
	}
	chosen := func(id plan.JobID) bool {
		return len(c.states) == 0 || slices.Contains(c.states, v.Job(id).Phase.String()) || slices.Contains(c.states, v.Standing(id))
	}
	for _, active := range []bool{true, false} {
		for _, id := range s.jobs.live {
			if (v.Job(id).Phase == plan.Active) == active && chosen(id) {
				add(id)
			}
		}
	}
	for id := plan.JobID(v.Jobs()) - 1; ended && id >= 0 && len(out.Jobs) < c.limit; id-- {
		if v.Job(id).Phase.Over() && chosen(id) {
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
			return nil, refuse(http.StatusBadRequest, fmt.Sprintf("phase %q: expected one of %s", name, strings.Join(known, ", ")))
		}
		out = append(out, name)
	}
	return out, nil
}

// number reads a whole number of the query.
func number(r *http.Request, name string, usual, low, high int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, refuse(http.StatusBadRequest, fmt.Sprintf("%s=%q: expected a number from %d to %d", name, text, low, high))
	}
	return n, nil
}

var jobVerbs = map[string]engine.Kind{"cancel": engine.Cancel, "hold": engine.Hold, "release": engine.Release, "requeue": engine.Requeue}

// changeJob carries out what an owner asks of a job, or of all copies of an array that
// it can be asked of.
func (s *Server) changeJob(w http.ResponseWriter, r *http.Request) error {
	kind, ok := jobVerbs[r.PathValue("verb")]
	if !ok {
		return refuse(http.StatusNotFound, fmt.Sprintf("a job cannot %s: expected cancel, hold, release or requeue", r.PathValue("verb")))
	}
	var events []engine.Event
	var target jobs
	var name, owner, tenant string
	over := false
	who := access.From(r.Context())
	err := s.named(r, func(v plan.View, ids jobs) {
		info := s.config.Plane.Info(ids.first)
		target, name, owner, tenant = ids, r.PathValue("job"), ownerOf(info), tenantOf(info)
		for id := range ids.all() {
			events = append(events, engine.Event{Kind: kind, Job: id, By: who.String()})
			over = over || v.Job(id).Phase.Over()
		}
	})
	if err != nil {
		return err
	}
	if !who.Steers(tenant, owner) {
		return refuse(http.StatusForbidden, fmt.Sprintf("job %s belongs to %s, and you are %s: ask its owner, or an operator", name, owner, who.Name))
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	if err := s.refused(s.config.Plane.Each(ctx, events)); err != nil {
		return err
	}
	var job view.Job
	err = s.ask(r.Context(), func(v plan.View) {
		if over { // and may not be any more
			s.jobs = newIndex()
		}
		job = s.described(v, target, who)
	})
	if err != nil {
		return err
	}
	return answer(w, job)
}

// request makes an event durable. A refusal of the plane's is a conflict with what
// is; an error that wraps another is of the journal.
func (s *Server) request(r *http.Request, e engine.Event, key string) error {
	_, err := s.send(r, []engine.Event{e}, key)
	return err
}

var nodeVerbs = map[string]engine.Kind{"cordon": engine.Cordon, "uncordon": engine.Uncordon, "drain": engine.Drain}

func (s *Server) changeNode(w http.ResponseWriter, r *http.Request) error {
	kind, ok := nodeVerbs[r.PathValue("verb")]
	if !ok {
		return refuse(http.StatusNotFound, fmt.Sprintf("a node cannot %s: expected cordon, uncordon, drain, close or reopen", r.PathValue("verb")))
	}
	node, err := s.node(r)
	if err != nil {
		return err
	}
	return s.steer(w, r, engine.Event{Kind: kind, Node: node})
}

// changeCluster pauses and unpauses the decisions.
func (s *Server) changeCluster(w http.ResponseWriter, r *http.Request) error {
	kind, ok := map[string]engine.Kind{"pause": engine.Pause, "unpause": engine.Unpause}[r.PathValue("verb")]
	if !ok {
		return refuse(http.StatusNotFound, "there is nothing here: expected /v1/pause or /v1/unpause")
	}
	if err := s.request(r, engine.Event{Kind: kind, By: access.From(r.Context()).String()}, ""); err != nil {
		return err
	}
	return s.getCluster(w, r)
}

func (s *Server) listNodes(w http.ResponseWriter, r *http.Request) error {
	return tell(s, w, r, func(v plan.View) view.Nodes {
		return view.Nodes{Nodes: s.veil(access.From(r.Context())).nodes(view.NodesOf(v))}
	})
}

func (s *Server) getCluster(w http.ResponseWriter, r *http.Request) error {
	return tell(s, w, r, func(v plan.View) view.Cluster { return s.veil(access.From(r.Context())).cluster(s.cluster(v)) })
}

// cluster is called inside a query.
func (s *Server) cluster(v plan.View) view.Cluster {
	s.jobs.update(v)
	return view.ClusterOf(v, s.config.Plane.Strategy(), s.jobs.all(), s.jobs.over)
}

func (s *Server) getVersion(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, view.Version{Version: s.config.Version, API: "v1"})
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, map[string]string{"status": "ok"})
}

// ready says whether the plane answers and takes submissions.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if err := s.ask(r.Context(), func(plan.View) {}); err != nil {
		return err
	}
	if err := cmp.Or(s.config.Plane.Refusing(), s.config.Audit.Ready()); err != nil {
		s.config.Log.Warn("not ready: submissions are refused", "error", err)
		return refuse(http.StatusServiceUnavailable, "submissions are refused, what they change cannot be written: the disk is full or fails, and the server's log says more")
	}
	return answer(w, map[string]string{"status": "ready"})
}
