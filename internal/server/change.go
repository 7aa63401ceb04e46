package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

// changes carries out what people ask to be changed: an event each, which the plane makes
// durable or refuses.
type changes struct {
	reader *reader
	plane  *plane.Plane
}

var jobVerbs = map[string]engine.Kind{"cancel": engine.Cancel, "hold": engine.Hold, "release": engine.Release, "requeue": engine.Requeue}

// changeJob carries out what an owner asks of a job, or of all copies of an array that
// it can be asked of.
func (c *changes) changeJob(w http.ResponseWriter, r *http.Request) error {
	kind, ok := jobVerbs[r.PathValue("verb")]
	if !ok {
		return door.Refuse(http.StatusNotFound, fmt.Sprintf("a job cannot %s: expected cancel, hold, release or requeue", r.PathValue("verb")))
	}
	var events []engine.Event
	var target jobs
	var name, owner, tenant string
	over := false
	who := access.From(r.Context())
	err := c.reader.named(r, func(v plan.View, ids jobs) {
		info := c.plane.Info(ids.first)
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
		return door.Refuse(http.StatusForbidden, fmt.Sprintf("job %s belongs to %s, and you are %s: ask its owner, or an operator", name, owner, who.Name))
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	if err := refused(c.plane.Each(ctx, events)); err != nil {
		return err
	}
	var job view.Job
	err = c.reader.ask(r.Context(), func(v plan.View) {
		if over { // and may not be any more
			c.reader.recount()
		}
		job = c.reader.described(v, target, who)
	})
	if err != nil {
		return err
	}
	return door.Answer(w, job)
}

// request makes an event durable. A refusal of the plane's is a conflict with what
// is; an error that wraps another is of the journal.
func (c *changes) request(r *http.Request, e engine.Event, key string) error {
	_, err := send(r.Context(), c.plane, []engine.Event{e}, key)
	return err
}

var nodeVerbs = map[string]engine.Kind{"cordon": engine.Cordon, "uncordon": engine.Uncordon, "drain": engine.Drain}

func (c *changes) changeNode(w http.ResponseWriter, r *http.Request) error {
	kind, ok := nodeVerbs[r.PathValue("verb")]
	if !ok {
		return door.Refuse(http.StatusNotFound, fmt.Sprintf("a node cannot %s: expected cordon, uncordon, drain, close or reopen", r.PathValue("verb")))
	}
	node, err := c.reader.node(r)
	if err != nil {
		return err
	}
	return c.steer(w, r, engine.Event{Kind: kind, Node: node})
}

// changeCluster pauses and unpauses the decisions.
func (c *changes) changeCluster(w http.ResponseWriter, r *http.Request) error {
	kind, ok := map[string]engine.Kind{"pause": engine.Pause, "unpause": engine.Unpause}[r.PathValue("verb")]
	if !ok {
		return door.Refuse(http.StatusNotFound, "there is nothing here: expected /v1/pause or /v1/unpause")
	}
	if err := c.request(r, engine.Event{Kind: kind, By: access.From(r.Context()).String()}, ""); err != nil {
		return err
	}
	return c.reader.getCluster(w, r)
}
