package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// closeNode plans a maintenance window of a node. Two that overlap are refused: the
// end of the first would open the node in the middle of the second.
func (s *Server) closeNode(w http.ResponseWriter, r *http.Request) error {
	var ask view.WindowRequest
	if err := receive(w, r, &ask); err != nil {
		return err
	}
	node, err := s.node(r)
	if err != nil {
		return err
	}
	access.CallOf(r.Context()).Note = fmt.Sprintf("from %s to %s", clock(ask.FromUs), clock(ask.ToUs))
	var taken error
	err = s.ask(r.Context(), func(v plan.View) {
		for _, w := range v.Windows() {
			if w.Node == node && int64(w.From) < ask.ToUs && ask.FromUs < int64(w.To) {
				taken = refuse(http.StatusConflict, fmt.Sprintf("%s is closed from %s to %s already: cancel that, or choose another time",
					r.PathValue("node"), clock(int64(w.From)), clock(int64(w.To))))
			}
		}
	})
	if err == nil {
		err = taken
	}
	if err != nil {
		return err
	}
	return s.steer(w, r, engine.Event{Kind: engine.Close, Node: node, Bounds: engine.Bounds{From: unit.Time(ask.FromUs), To: unit.Time(ask.ToUs)}})
}

// reopenNode takes all maintenance windows of a node out of the calendar.
func (s *Server) reopenNode(w http.ResponseWriter, r *http.Request) error {
	node, err := s.node(r)
	if err != nil {
		return err
	}
	return s.steer(w, r, engine.Event{Kind: engine.Reopen, Node: node})
}

func clock(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }

// node is the one that the path names.
func (s *Server) node(r *http.Request) (plan.NodeID, error) {
	node := plan.NodeID(plan.None)
	err := s.ask(r.Context(), func(v plan.View) {
		for i := range v.Cluster().Nodes {
			if v.Cluster().Nodes[i].Name == r.PathValue("node") {
				node = plan.NodeID(i)
			}
		}
	})
	if err == nil && node == plan.None {
		err = refuse(http.StatusNotFound, fmt.Sprintf("there is no node %q: muster nodes lists them", r.PathValue("node")))
	}
	return node, err
}

// steer asks for an event about a node and answers with how the node is then.
func (s *Server) steer(w http.ResponseWriter, r *http.Request, e engine.Event) error {
	e.By = access.From(r.Context()).String()
	if err := s.request(r, e, ""); err != nil {
		return err
	}
	var out view.Node
	if err := s.ask(r.Context(), func(v plan.View) { out = view.NodeOf(v, e.Node) }); err != nil {
		return err
	}
	return answer(w, out)
}
