package server

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	return door.Answer(w, map[string]string{"status": "ok"})
}

// ready says whether the plane answers and takes submissions.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	sick, nodes := 0, 0
	if err := s.reader.ask(r.Context(), func(v plan.View) { sick, nodes = len(s.reader.plane.Quarantines()), v.Nodes() }); err != nil {
		return err
	}
	if err := cmp.Or(s.config.Plane.Refusing(), s.config.Audit.Ready()); err != nil {
		s.config.Log.Warn("not ready: submissions are refused", "error", err)
		return door.Refuse(http.StatusServiceUnavailable, "submissions are refused, what they change cannot be written: the disk is full or fails, and the server's log says more")
	}
	out := view.Ready{Status: "ready"}
	if sick > 0 {
		out.Quarantined = fmt.Sprintf("%d of %d nodes, on which starts failed in a row; muster ls says why and when one is tried again", sick, nodes)
	}
	return door.Answer(w, out)
}

// quarantined says in words which nodes are in quarantine.
func (rd *reader) quarantined(v plan.View) (list []string) {
	for _, q := range rd.plane.Quarantines() {
		words := fmt.Sprintf("%s takes no jobs: %d starts failed there in a row", v.Cluster().Nodes[q.Node].Name, v.Node(q.Node).Sick)
		if n := len(q.Why); n > 0 {
			words += ", the last one because " + q.Why[n-1]
		}
		if q.Trial.On {
			words += "; one is being tried"
		} else {
			words += fmt.Sprintf("; one is tried again in %s", view.Span(max(0, q.Trial.At.Sub(v.Now()))))
		}
		list = append(list, words)
	}
	return list
}
