package server

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

// Bounds of a list of jobs.
const (
	usualListed = 1000
	mostListed  = 10_000
)

// find resolves what a path calls a job: its name, else its id.
func (s *Server) find(v plan.View, ref string) (plan.JobID, error) {
	if id, ok := s.config.Plane.Find(ref); ok {
		return id, nil
	}
	if n, err := strconv.ParseInt(ref, 10, 32); err == nil && n >= 0 && int(n) < v.Jobs() {
		return plan.JobID(n), nil
	}
	return plan.None, refuse(http.StatusNotFound, fmt.Sprintf("there is no job %q: muster ls --all lists them", ref))
}

// about asks the plane about the job that the path names.
func (s *Server) about(r *http.Request, f func(v plan.View, id plan.JobID, info plane.JobInfo)) error {
	var missing error
	err := s.ask(r.Context(), func(v plan.View) {
		id, err := s.find(v, r.PathValue("job"))
		if err != nil {
			missing = err
			return
		}
		f(v, id, s.config.Plane.Info(id))
	})
	if err != nil {
		return err
	}
	return missing
}

// getJob describes a job; with ?wait=SECONDS it answers when the job has ended, or
// after that long.
func (s *Server) getJob(w http.ResponseWriter, r *http.Request) error {
	wait, err := number(r, "wait", 0, 0, 3600)
	if err != nil {
		return err
	}
	var job view.Job
	look := func() error {
		return s.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) { job = view.JobOf(v, info, id) })
	}
	if err := look(); err != nil {
		return err
	}
	if wait == 0 || job.Over() {
		return answer(w, job)
	}
	if err := s.openStream(); err != nil {
		return err
	}
	defer s.streams.Add(-1)
	changed, stop := s.config.Plane.Watch()
	defer stop()
	deadline := time.After(time.Duration(wait) * time.Second)
	for {
		if err := look(); err != nil || job.Over() { // also what happened before the watch began
			break
		}
		select {
		case <-changed:
			time.Sleep(50 * time.Millisecond) // others wait too
			continue
		case <-deadline:
		case <-s.closing:
		case <-r.Context().Done():
		}
		break
	}
	return answer(w, job)
}

func (s *Server) getWhy(w http.ResponseWriter, r *http.Request) error {
	var why view.Why
	err := s.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) {
		s.jobs.update(v)
		why = view.WhyOf(v, info, id, s.jobs.all())
	})
	if err != nil {
		return err
	}
	return answer(w, why)
}

func (s *Server) getSteps(w http.ResponseWriter, r *http.Request) error {
	var steps view.Steps
	if err := s.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) { steps = view.StepsOf(v, info, id) }); err != nil {
		return err
	}
	return answer(w, steps)
}

// listJobs lists the jobs that have not ended: those with a run first, then by id.
// With ?all=1 those that have ended follow, the latest submitted first; ?phase=
// chooses phases.
func (s *Server) listJobs(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", usualListed, 1, mostListed)
	if err != nil {
		return err
	}
	wanted, err := phases(r.URL.Query().Get("phase"))
	if err != nil {
		return err
	}
	all := r.URL.Query().Get("all") != "" && r.URL.Query().Get("all") != "0"
	var list view.Jobs
	err = s.ask(r.Context(), func(v plan.View) { list = s.list(v, wanted, all, limit) })
	if err != nil {
		return err
	}
	return answer(w, list)
}

// list is called inside a query. An empty wanted is every phase.
func (s *Server) list(v plan.View, wanted []plan.Phase, all bool, limit int) view.Jobs {
	s.jobs.update(v)
	out := view.Jobs{Jobs: []view.Job{}}
	add := func(id plan.JobID) {
		if len(out.Jobs) < limit {
			out.Jobs = append(out.Jobs, view.JobOf(v, s.config.Plane.Info(id), id))
		} else {
			out.LeftOut++
		}
	}
	ended := all
	for _, p := range wanted {
		ended = ended || p.Over()
	}
	for _, active := range []bool{true, false} {
		for _, id := range s.jobs.live {
			p := v.Job(id).Phase
			if (p == plan.Active) == active && (len(wanted) == 0 || slices.Contains(wanted, p)) {
				add(id)
			}
		}
	}
	for id := plan.JobID(v.Jobs()) - 1; ended && id >= 0 && len(out.Jobs) < limit; id-- {
		if p := v.Job(id).Phase; p.Over() && (len(wanted) == 0 || slices.Contains(wanted, p)) {
			add(id)
		}
	}
	return out
}

// phases reads a list of phases, such as "waiting,held".
func phases(list string) (out []plan.Phase, err error) {
	if list == "" {
		return nil, nil
	}
	var known []string
	for p := range plan.Refused + 1 {
		known = append(known, p.String())
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, refuse(http.StatusBadRequest, fmt.Sprintf("phase %q: expected one of %s", name, strings.Join(known, ", ")))
		}
		out = append(out, plan.Phase(i))
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

// changeJob carries out what an owner asks of a job.
func (s *Server) changeJob(w http.ResponseWriter, r *http.Request) error {
	kind, ok := jobVerbs[r.PathValue("verb")]
	if !ok {
		return refuse(http.StatusNotFound, fmt.Sprintf("a job cannot %s: expected cancel, hold, release or requeue", r.PathValue("verb")))
	}
	var target plan.JobID
	var name, owner string
	var was plan.Phase
	err := s.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) {
		target, name, owner, was = id, v.Name(id), ownerOf(info), v.Job(id).Phase
	})
	if err != nil {
		return err
	}
	p := peerOf(r)
	if !p.owns(owner) {
		return refuse(http.StatusForbidden, fmt.Sprintf("job %s belongs to %s, and you are %s: ask its owner, or an operator", name, owner, p.name))
	}
	if err := s.request(r, engine.Event{Kind: kind, Job: target, By: p.String()}, ""); err != nil {
		return err
	}
	var job view.Job
	err = s.ask(r.Context(), func(v plan.View) {
		if was.Over() {
			s.jobs.revive(target, was)
		}
		job = view.JobOf(v, s.config.Plane.Info(target), target)
	})
	if err != nil {
		return err
	}
	return answer(w, job)
}

func ownerOf(info plane.JobInfo) string {
	if info.Spec == nil {
		return ""
	}
	return info.Spec.User
}

// request makes an event durable. A refusal of the plane's is a conflict with what
// is; an error that wraps another is of the journal.
func (s *Server) request(r *http.Request, e engine.Event, key string) error {
	_, err := s.send(r, e, key)
	return err
}

var nodeVerbs = map[string]engine.Kind{"cordon": engine.Cordon, "uncordon": engine.Uncordon, "drain": engine.Drain}

func (s *Server) changeNode(w http.ResponseWriter, r *http.Request) error {
	kind, ok := nodeVerbs[r.PathValue("verb")]
	if !ok {
		return refuse(http.StatusNotFound, fmt.Sprintf("a node cannot %s: expected cordon, uncordon or drain", r.PathValue("verb")))
	}
	if err := operator(r); err != nil {
		return err
	}
	node := plan.NodeID(plan.None)
	err := s.ask(r.Context(), func(v plan.View) {
		for i := range v.Cluster().Nodes {
			if v.Cluster().Nodes[i].Name == r.PathValue("node") {
				node = plan.NodeID(i)
			}
		}
	})
	if err != nil {
		return err
	}
	if node == plan.None {
		return refuse(http.StatusNotFound, fmt.Sprintf("there is no node %q: muster nodes lists them", r.PathValue("node")))
	}
	if err := s.request(r, engine.Event{Kind: kind, Node: node, By: peerOf(r).String()}, ""); err != nil {
		return err
	}
	var out view.Node
	if err := s.ask(r.Context(), func(v plan.View) { out = view.NodeOf(v, node) }); err != nil {
		return err
	}
	return answer(w, out)
}

func operator(r *http.Request) error {
	if p := peerOf(r); !p.operates() {
		return refuse(http.StatusForbidden, fmt.Sprintf("this is for root and the user the server runs as, and you are %s", p.name))
	}
	return nil
}

// changeCluster pauses and unpauses the decisions.
func (s *Server) changeCluster(w http.ResponseWriter, r *http.Request) error {
	kind, ok := map[string]engine.Kind{"pause": engine.Pause, "unpause": engine.Unpause}[r.PathValue("verb")]
	if !ok {
		return refuse(http.StatusNotFound, "there is nothing here: expected /v1/pause or /v1/unpause")
	}
	if err := operator(r); err != nil {
		return err
	}
	if err := s.request(r, engine.Event{Kind: kind, By: peerOf(r).String()}, ""); err != nil {
		return err
	}
	return s.getCluster(w, r)
}

func (s *Server) listNodes(w http.ResponseWriter, r *http.Request) error {
	var list view.Nodes
	if err := s.ask(r.Context(), func(v plan.View) { list.Nodes = view.NodesOf(v) }); err != nil {
		return err
	}
	return answer(w, list)
}

func (s *Server) getCluster(w http.ResponseWriter, r *http.Request) error {
	var c view.Cluster
	if err := s.ask(r.Context(), func(v plan.View) { c = s.cluster(v) }); err != nil {
		return err
	}
	return answer(w, c)
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

// ready says whether the plane answers.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if err := s.ask(r.Context(), func(plan.View) {}); err != nil {
		return err
	}
	return answer(w, map[string]string{"status": "ready"})
}
