package server

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// pageJobs is how many of the latest jobs the page counts besides the live ones.
const pageJobs = 20_000

// pageRefresh is how often a browser asks for the page again.
const pageRefresh = "5"

// page shows the live history as a report.
func (o *observer) page(w http.ResponseWriter, r *http.Request) error {
	c := report.NewCollector(report.Limits{Spans: 2*keptSpans + 4096, Jobs: keptJobs})
	known := report.Result{}
	var lanes []report.Lane
	var at unit.Time
	total := 0
	err := o.reader.ask(r.Context(), func(v plan.View) {
		at, total = v.Now(), v.Jobs()
		stats := o.plane.Stats()
		known.Strategy, known.Trace, known.Events, known.Commits = o.plane.Strategy(), "live on "+v.Cluster().Name, stats.Events, stats.Commits
		o.history.note(v, o.reader.live(v)) // the last look may be a while ago
		o.collectJobs(v, c)
		for id := range plan.DeviceID(v.Devices()) {
			n := v.Device(id).Node
			lanes = append(lanes, report.Lane{Node: v.Cluster().Nodes[n].Name, Name: fmt.Sprint(id - v.Node(n).First)})
		}
	})
	if err != nil {
		return err
	}
	o.history.feed(c, at)
	known.Notes = []string{"This page shows what goes on now and refreshes itself. Bars and series begin when this server did."}
	if total > pageJobs {
		known.Notes = append(known.Notes, fmt.Sprintf("Of %d jobs, those that live and the latest %d are counted.", total, pageJobs))
	}
	if skipped := c.View().JobsLeftOut; skipped > 0 {
		known.Notes = append(known.Notes, fmt.Sprintf("The table has %d jobs; muster ls --all lists them all.", keptJobs))
	}
	p := report.Page{Title: "Muster: " + known.Trace, When: time.UnixMicro(int64(at)).Format(time.RFC1123), Lanes: lanes, Console: "/console/",
		Runs: []report.Run{{Row: report.Row{Result: c.Result(known)}, View: c.View()}}}
	var b bytes.Buffer
	if err := report.HTML(&b, p); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Refresh", pageRefresh)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'")
	_, err = w.Write(b.Bytes())
	return err
}

// collectJobs tells a collector of the jobs, the live ones first: those are what the
// table is about. It is called inside a query, which everybody else waits for.
func (o *observer) collectJobs(v plan.View, c *report.Collector) {
	for _, id := range o.reader.live(v) {
		c.Job(recordOf(v, o.plane.Info(id), id))
	}
	for id := plan.JobID(v.Jobs()) - 1; id >= max(0, plan.JobID(v.Jobs())-pageJobs); id-- {
		if v.Job(id).Phase.Over() {
			c.Job(recordOf(v, o.plane.Info(id), id))
		}
	}
}

// recordOf is a job as a report remembers it.
func recordOf(v plan.View, info plane.JobInfo, id plan.JobID) report.JobRecord {
	j, shape := v.Job(id), v.Shape(id)
	rec := report.JobRecord{ID: int32(id), Name: v.Name(id), Submit: j.Submit, FirstStart: j.Started, End: v.Now(), Gang: shape.Gang,
		Waited: v.WaitedFor(id), Preemptions: j.Preemptions, Restarts: j.Restarts,
		FirstLoss: float32(info.FirstLoss), LastLoss: float32(info.LastLoss), Deadline: j.Deadline}
	if shape.Devices > 0 {
		rec.Devices = unit.Milli(shape.Milli(shape.Gang))
	}
	if info.Spec != nil {
		rec.Tenant = info.Spec.Tenant
	}
	if j.Phase.Over() {
		rec.End = j.Ended
	}
	rec.Run = max(0, rec.End.Sub(rec.Submit)-rec.Waited)
	switch j.Phase {
	case plan.Finished:
		rec.Outcome = report.Finished
	case plan.Failed:
		rec.Outcome = report.Failed
		if j.Reason.Code == plan.OverLimit {
			rec.Outcome = report.TimeLimit
		}
	case plan.Cancelled:
		rec.Outcome = report.Cancelled
	case plan.Refused:
		rec.Outcome = report.Refused
	}
	return rec
}
