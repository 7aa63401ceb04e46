package server

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// How much of the past the page shows.
const (
	keptSpans  = 3000
	keptPoints = 5000
	keptJobs   = 2000
)

// history is what the page needs to know of the past and the state has forgotten:
// who was on which devices, and how many waited. It is watched, not journaled: it
// begins with the server, and a run that came and went between two looks is missing.
type history struct {
	mu     sync.Mutex
	open   map[runKey]openRun
	spans  []report.Span // of runs that ended, the latest last
	points []point
}

type runKey struct {
	job     plan.JobID
	attempt int32
}

type openRun struct {
	spans []report.Span // without an end
	seen  bool
}

// point is how things stood at one instant.
type point struct {
	at                unit.Time
	waiting           int
	granted, capacity unit.Milli
}

// observer looks at the plane while the server serves, shows those who watch what changed, and
// remembers of the past what the page and the shares' history need.
type observer struct {
	reader  *reader
	plane   *plane.Plane
	streams *streams
	log     *slog.Logger
	hub     hub
	history history
	shares  shareHistory // touched by the plane's goroutine only, inside a query
}

// observe looks at the plane after each change, a few times a second at most, and
// feeds the watches and the history.
func (o *observer) observe() {
	changed, stop := o.plane.Watch()
	defer stop()
	o.sample()
	for {
		select {
		case <-o.streams.closing:
			return
		case <-changed:
		}
		o.sample()
		select {
		case <-o.streams.closing:
			return
		case <-time.After(watchEvery):
		}
	}
}

// sample notes how the cluster is now, and shows it to those who watch.
func (o *observer) sample() {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	watched := o.hub.Watched()
	var snap view.Snapshot
	err := o.reader.ask(ctx, func(v plan.View) {
		o.history.note(v, o.reader.live(v))
		o.shares.note(v)
		if watched {
			snap = o.reader.snapshot(v, &everybody)
		}
	})
	if err == nil && watched {
		err = o.publish(snap)
	}
	if err != nil {
		o.log.Warn("looking at the plane", "error", err)
	}
}

// note compares the runs there are with those there were.
func (h *history) note(v plan.View, live []plan.JobID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[runKey]openRun{}
	}
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		if r.Status == plan.Gone || r.Status == plan.Promised {
			continue
		}
		key := runKey{r.Job, r.Attempt}
		o, known := h.open[key]
		if !known {
			o.spans = spansOf(v, id)
		}
		o.seen = true
		h.open[key] = o
	}
	var ended []report.Span
	for key, o := range h.open {
		if o.seen {
			o.seen = false
			h.open[key] = o
			continue
		}
		delete(h.open, key)
		for _, span := range o.spans {
			span.To, span.Reason = v.Now(), v.Job(key.job).Reason.Words(v)
			ended = append(ended, span)
		}
	}
	slices.SortFunc(ended, byLane) // a map has no order
	h.spans = append(h.spans, ended...)
	h.spans = latest(h.spans, keptSpans)
	h.points = latest(append(h.points, pointOf(v, live)), keptPoints)
}

func byLane(a, b report.Span) int {
	return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.From, b.From), cmp.Compare(a.Job, b.Job))
}

// latest keeps the last so many, moving them only now and then.
func latest[T any](list []T, keep int) []T {
	if len(list) > 2*keep {
		return append(list[:0], list[len(list)-keep:]...)
	}
	return list
}

// spansOf are the bars of a run: one for each stretch of neighbouring devices.
func spansOf(v plan.View, id plan.RunID) []report.Span {
	r := v.Run(id)
	from := r.Since
	if r.Began != unit.Never && r.Began != 0 {
		from = min(from, r.Began)
	}
	var spans []report.Span
	v.GrantsOf(id, func(g plan.Grant) {
		if g.Device == plan.None {
			return
		}
		if n := len(spans); n > 0 && spans[n-1].Lane+spans[n-1].Lanes == int32(g.Device) {
			spans[n-1].Lanes++
			return
		}
		spans = append(spans, report.Span{Job: v.Name(r.Job), Lane: int32(g.Device), Lanes: 1, From: from, Kind: report.SpanRun})
	})
	return spans
}

func pointOf(v plan.View, live []plan.JobID) point {
	p := point{at: v.Now()}
	for _, id := range live {
		if v.Job(id).Phase == plan.Waiting {
			p.waiting++
		}
	}
	for id := range plan.DeviceID(v.Devices()) {
		if d := v.Device(id); !d.Status.Out() {
			p.capacity += unit.Whole
			p.granted += unit.Milli(1000 - d.Free)
		}
	}
	return p
}

// feed tells a collector what is remembered; runs that go on end now.
func (h *history) feed(c *report.Collector, now unit.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, span := range latest(slices.Clone(h.spans), keptSpans) {
		c.Span(span)
	}
	var going []report.Span
	for _, o := range h.open {
		for _, span := range o.spans {
			span.To = max(now, span.From)
			going = append(going, span)
		}
	}
	slices.SortFunc(going, byLane)
	for _, span := range going {
		c.Span(span)
	}
	for _, p := range h.points {
		c.Queue(p.at, p.waiting)
		c.Busy(p.at, p.granted, p.capacity)
	}
}
