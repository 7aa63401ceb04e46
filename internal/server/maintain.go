package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// closeNode plans a maintenance window of a node. Two that overlap are refused: the
// end of the first would open the node in the middle of the second.
func (c *changes) closeNode(w http.ResponseWriter, r *http.Request) error {
	var ask view.WindowRequest
	if err := door.Receive(w, r, &ask); err != nil {
		return err
	}
	node, err := c.reader.node(r)
	if err != nil {
		return err
	}
	access.CallOf(r.Context()).Note = fmt.Sprintf("from %s to %s", clock(ask.FromUs), clock(ask.ToUs))
	var taken error
	var now view.Node
	var closing *view.Closing
	err = c.reader.ask(r.Context(), func(v plan.View) {
		for _, w := range v.Windows() {
			if w.Node == node && int64(w.From) < ask.ToUs && ask.FromUs < int64(w.To) {
				taken = door.Refuse(http.StatusConflict, fmt.Sprintf("%s is closed from %s to %s already: cancel that, or choose another time",
					r.PathValue("node"), clock(int64(w.From)), clock(int64(w.To))))
			}
		}
		now, closing = view.NodeOf(v, node), view.ClosingOf(v, node, max(v.Now(), unit.Time(ask.FromUs)), slices.Values(c.reader.live(v)))
	})
	if err == nil {
		err = taken
	}
	if err != nil {
		return err
	}
	if !ask.DryRun {
		now, err = c.steered(r, engine.Event{Kind: engine.Close, Node: node, Bounds: engine.Bounds{From: unit.Time(ask.FromUs), To: unit.Time(ask.ToUs)}})
	}
	if now.Closing = closing; err != nil {
		return err
	}
	return door.Answer(w, now)
}

// reopenNode takes all maintenance windows of a node out of the calendar.
func (c *changes) reopenNode(w http.ResponseWriter, r *http.Request) error {
	node, err := c.reader.node(r)
	if err != nil {
		return err
	}
	return c.steer(w, r, engine.Event{Kind: engine.Reopen, Node: node})
}

func clock(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }

// node is the one that the path names.
func (rd *reader) node(r *http.Request) (plan.NodeID, error) {
	node := plan.NodeID(plan.None)
	err := rd.ask(r.Context(), func(v plan.View) {
		for i := range v.Cluster().Nodes {
			if v.Cluster().Nodes[i].Name == r.PathValue("node") {
				node = plan.NodeID(i)
			}
		}
	})
	if err == nil && node == plan.None {
		err = door.Refuse(http.StatusNotFound, fmt.Sprintf("there is no node %q: muster nodes lists them", r.PathValue("node")))
	}
	return node, err
}

// steer asks for an event about a node and answers with how the node is then.
func (c *changes) steer(w http.ResponseWriter, r *http.Request, e engine.Event) error {
	out, err := c.steered(r, e)
	if err != nil {
		return err
	}
	return door.Answer(w, out)
}

func (c *changes) steered(r *http.Request, e engine.Event) (out view.Node, err error) {
	e.By = access.From(r.Context()).String()
	if err := c.request(r, e, ""); err != nil {
		return out, err
	}
	err = c.reader.ask(r.Context(), func(v plan.View) { out = view.NodeOf(v, e.Node) })
	return out, err
}
