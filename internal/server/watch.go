package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

// How a watch is fed.
const (
	watchEvery = 200 * time.Millisecond // at most one snapshot in this time
	keepAlive  = 15 * time.Second       // a sign of life on a quiet watch
	watchJobs  = 500                    // listed in a snapshot
)

// frame is a snapshot as it goes out, with the id to resume from.
type frame struct {
	id   string
	json []byte
}

// hub has the latest snapshot and tells the watchers that there is a new one. A slow
// watcher misses snapshots, never the last.
type hub struct {
	mu       sync.Mutex
	latest   frame
	watchers map[chan struct{}]bool
}

func newHub() *hub { return &hub{watchers: map[chan struct{}]bool{}} }

func (h *hub) subscribe() (c chan struct{}, stop func()) {
	c = make(chan struct{}, 1)
	h.mu.Lock()
	h.watchers[c] = true
	h.mu.Unlock()
	return c, func() {
		h.mu.Lock()
		delete(h.watchers, c)
		h.mu.Unlock()
	}
}

func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers) > 0
}

func (h *hub) publish(f frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = f
	for c := range h.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (h *hub) get() frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest
}

// snapshot is called inside a query.
func (s *Server) snapshot(v plan.View) view.Snapshot {
	jobs := s.list(v, nil, false, watchJobs)
	stats := s.config.Plane.Stats()
	return view.Snapshot{ID: fmt.Sprintf("%x-%d-%d", int64(stats.Started), stats.Events, stats.Commits),
		Cluster: s.cluster(v), Jobs: jobs.Jobs, JobsLeftOut: jobs.LeftOut, Nodes: view.NodesOf(v)}
}

func (s *Server) publish(snap view.Snapshot) error {
	data, err := json.Marshal(snap)
	if err != nil {
		return fmt.Errorf("encoding a snapshot: %w", err)
	}
	s.hub.publish(frame{id: snap.ID, json: data})
	return nil
}

// watch streams a snapshot at each change, as server-sent events, or as JSON lines
// where the caller accepts application/x-ndjson. One that names the last snapshot it
// saw (Last-Event-ID, or ?last=) gets nothing until something has changed since.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) error {
	if err := s.openStream(); err != nil {
		return err
	}
	defer s.streams.Add(-1)
	changed, stop := s.hub.subscribe()
	defer stop()
	var snap view.Snapshot
	if err := s.ask(r.Context(), func(v plan.View) { snap = s.snapshot(v) }); err != nil {
		return err
	}
	if err := s.publish(snap); err != nil {
		return err
	}
	lines := strings.Contains(r.Header.Get("Accept"), "application/x-ndjson")
	kind := "text/event-stream"
	if lines {
		kind = "application/x-ndjson"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		last = r.URL.Query().Get("last")
	}
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for {
		if f := s.hub.get(); f.id != last {
			if err := write(w, f, lines); err != nil {
				return nil // the watcher went away
			}
			last = f.id
			quiet.Reset(keepAlive)
		}
		if control.Flush() != nil {
			return nil
		}
		select {
		case <-changed:
		case <-quiet.C:
			sign := ":\n\n"
			if lines {
				sign = "\n"
			}
			if _, err := w.Write([]byte(sign)); err != nil {
				return nil
			}
		case <-s.closing:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

func write(w http.ResponseWriter, f frame, lines bool) error {
	var b bytes.Buffer
	if lines {
		b.Write(f.json)
		b.WriteByte('\n')
	} else {
		fmt.Fprintf(&b, "id: %s\nevent: snapshot\ndata: %s\n\n", f.id, f.json)
	}
	_, err := w.Write(b.Bytes())
	return err
}
