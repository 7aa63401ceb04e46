package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
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

// hub has the latest snapshot and tells the watchers that there is a new one.
type hub struct {
	plane.Bell
	latest atomic.Pointer[frame]
}

func (h *hub) publish(f frame) {
	h.latest.Store(&f)
	h.Ring()
}

// snapshot is what an identity sees. It is called inside a query.
func (rd *reader) snapshot(v plan.View, who *access.Identity) view.Snapshot {
	jobs := rd.list(v, who, choice{limit: watchJobs})
	stats := rd.plane.Stats()
	x := rd.veil(who)
	return view.Snapshot{ID: fmt.Sprintf("%x-%d-%d", int64(stats.Started), stats.Events, stats.Commits),
		Cluster: x.cluster(rd.cluster(v)), Jobs: jobs.Jobs, JobsLeftOut: jobs.LeftOut, Nodes: x.nodes(view.NodesOf(v))}
}

// everybody is who sees what the hub has.
var everybody = access.Identity{Role: access.Viewer, Tenants: []string{access.Everything}}

func frameOf(snap view.Snapshot) (frame, error) {
	data, err := json.Marshal(snap)
	if err != nil {
		return frame{}, fmt.Errorf("encoding a snapshot: %w", err)
	}
	return frame{id: snap.ID, json: data}, nil
}

// frame is the latest snapshot for an identity. Those that see everything share one.
func (o *observer) frame(ctx context.Context, who *access.Identity) (frame, error) {
	if who.SeesAll() {
		return *o.hub.latest.Load(), nil
	}
	var snap view.Snapshot
	if err := o.reader.ask(ctx, func(v plan.View) { snap = o.reader.snapshot(v, who) }); err != nil {
		return frame{}, err
	}
	return frameOf(snap)
}

func (o *observer) publish(snap view.Snapshot) error {
	f, err := frameOf(snap)
	if err == nil {
		o.hub.publish(f)
	}
	return err
}

// asLines reports whether the caller wants JSON, a value a line, in the place of another
// type of content, and says in the answer which of the two comes.
func asLines(w http.ResponseWriter, r *http.Request, otherwise string) bool {
	const lines = "application/x-ndjson"
	if strings.Contains(r.Header.Get("Accept"), lines) {
		w.Header().Set("Content-Type", lines)
		return true
	}
	w.Header().Set("Content-Type", otherwise)
	return false
}

// watch streams a snapshot at each change, as server-sent events, or as JSON lines
// where the caller accepts application/x-ndjson. One that names the last snapshot it
// saw (Last-Event-ID, or ?last=) gets nothing until something has changed since.
func (o *observer) watch(w http.ResponseWriter, r *http.Request) error {
	r, done, err := o.streams.begin(r)
	if err != nil {
		return err
	}
	defer done()
	who := access.From(r.Context())
	changed, stop := o.hub.Watch()
	defer stop()
	var snap view.Snapshot
	if err := o.reader.ask(r.Context(), func(v plan.View) { snap = o.reader.snapshot(v, &everybody) }); err != nil {
		return err
	}
	if err := o.publish(snap); err != nil {
		return err
	}
	lines := asLines(w, r, "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	last := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("last"))
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for {
		f, err := o.frame(r.Context(), who)
		if err != nil {
			return nil // it began: there is nobody to tell
		}
		if f.id != last {
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
		case <-o.streams.closing:
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
