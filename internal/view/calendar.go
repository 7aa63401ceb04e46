package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// Calendar is what occupies nodes now and what is planned.
type Calendar struct {
	NowUs   int64           `json:"now_us"`
	Entries []CalendarEntry `json:"entries"`
}

// CalendarEntry is a run, a claim of a job that waits, or a maintenance window.
type CalendarEntry struct {
	Kind    string   `json:"kind"` // run, claim or window
	Job     string   `json:"job"`
	Queue   string   `json:"queue"`
	Nodes   []string `json:"nodes"`
	Devices float64  `json:"devices"`
	FromUs  int64    `json:"from_us"`
	ToUs    int64    `json:"to_us"` // -1 is unknown
	Words   string   `json:"words"`
}

// Window is a maintenance window of a node.
type Window struct {
	FromUs int64 `json:"from_us"`
	ToUs   int64 `json:"to_us"`
	Open   bool  `json:"open"` // it has begun
}

// WindowRequest asks for a maintenance window; one that should have begun begins now.
type WindowRequest struct {
	FromUs int64 `json:"from_us"`
	ToUs   int64 `json:"to_us"`
	// DryRun asks what it would mean to jobs, and changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// windowsOf are the windows of a node that have not ended, the first first.
func windowsOf(v plan.View, node plan.NodeID) (list []Window) {
	for _, w := range v.Windows() {
		if w.Node == node {
			list = append(list, Window{int64(w.From), int64(w.To), w.Open})
		}
	}
	return list
}

// CalendarOf lists the runs by when they began, the claims by rank, and the windows by
// node. Runs end when they are expected to (calendar.Told).
func CalendarOf(v plan.View) Calendar {
	out := Calendar{NowUs: int64(v.Now()), Entries: []CalendarEntry{}}
	for id := range plan.RunID(v.RunSlots()) {
		if v.Run(id).Status != plan.Gone {
			out.Entries = append(out.Entries, runEntry(v, id))
		}
	}
	slices.SortFunc(out.Entries, func(a, b CalendarEntry) int {
		return cmp.Or(cmp.Compare(a.FromUs, b.FromUs), cmp.Compare(a.Job, b.Job))
	})
	for _, c := range v.Claims() {
		out.Entries = append(out.Entries, claimEntry(v, &c))
	}
	for _, w := range v.Windows() {
		n := v.Node(w.Node)
		words := "maintenance: the node is drained when it begins"
		if w.Open {
			words = "maintenance: the node takes no runs"
		}
		out.Entries = append(out.Entries, CalendarEntry{Kind: "window", Nodes: []string{v.Cluster().Nodes[w.Node].Name}, Devices: float64(n.Count),
			FromUs: int64(w.From), ToUs: int64(w.To), Words: words})
	}
	return out
}

func queueName(v plan.View, job plan.JobID) string {
	if t := v.Queues(); len(t.Queues) > 0 {
		return t.Queues[v.QueueOf(v.Job(job).Tenant)].Name
	}
	return ""
}

// micros is an instant that may be unknown.
func micros(t unit.Time) int64 {
	if t == unit.Never {
		return -1
	}
	return int64(t)
}

func runEntry(v plan.View, id plan.RunID) CalendarEntry {
	r := v.Run(id)
	e := CalendarEntry{Kind: "run", Job: v.Name(r.Job), Queue: queueName(v, r.Job), Nodes: []string{}, FromUs: int64(r.Since)}
	if r.Began != unit.Never && r.Began != 0 {
		e.FromUs = int64(min(r.Since, r.Began))
	}
	milli := int64(0)
	v.GrantsOf(id, func(g plan.Grant) {
		if name := v.Cluster().Nodes[g.Node].Name; !slices.Contains(e.Nodes, name) {
			e.Nodes = append(e.Nodes, name)
		}
		if g.Device != plan.None {
			milli += int64(g.Reserve)
		}
	})
	e.Devices = whole(milli)
	switch r.Status {
	case plan.Stopping:
		e.ToUs, e.Words = int64(v.Now()), "it is being stopped"
		return e
	case plan.Promised:
		e.Words = "starts when its place is free; "
	case plan.Suspended:
		e.Words = "suspended; "
	}
	end := calendar.Told(v, id)
	e.ToUs = micros(end)
	e.Words += basis(v, r.Job, end)
	return e
}

// basis says what an expected end rests on.
func basis(v plan.View, job plan.JobID, end unit.Time) string {
	j := v.Job(job)
	switch {
	case j.Progress > 0 && j.Estimate > 0:
		return fmt.Sprintf("by its progress of %d %% and its estimate of %s", j.Progress/10_000, Span(j.Estimate))
	case j.Progress > 0:
		return fmt.Sprintf("by its progress of %d %%", j.Progress/10_000)
	case end == unit.Never:
		return "nobody knows how long it runs: it has no estimate and no time limit"
	case j.Estimate <= 0 || j.TimeLimit > 0 && j.TimeLimit < j.Estimate:
		return fmt.Sprintf("ends by its time limit of %s at the latest", Span(j.TimeLimit))
	case v.Executed(job) > j.Estimate:
		return fmt.Sprintf("it has outlived its estimate of %s, which is doubled as often as it takes", Span(j.Estimate))
	}
	return fmt.Sprintf("by its estimate of %s", Span(j.Estimate))
}

func claimEntry(v plan.View, c *plan.Claim) CalendarEntry {
	e := CalendarEntry{Kind: "claim", Job: v.Name(c.Job), Queue: queueName(v, c.Job), Nodes: []string{}, FromUs: int64(v.Now()), ToUs: -1}
	for _, p := range c.Parts {
		e.Nodes = append(e.Nodes, v.Cluster().Nodes[p.Node].Name)
		e.Devices += float64(p.Devices)
	}
	workers := count(int(c.Workers), "worker", "workers")
	switch {
	case c.At == unit.Never:
		e.Words = fmt.Sprintf("kept free for its %s until what runs there ends; nobody knows when", workers)
	case c.Closed(v.Now()):
		e.Words = fmt.Sprintf("kept free for its %s: its time has come, and no other work gets this room", workers)
	default:
		e.Words = fmt.Sprintf("reserved for its %s; what fits before may run there", workers)
	}
	if c.At != unit.Never {
		e.FromUs = int64(max(c.At, v.Now()))
		if c.Length < unit.Forever {
			e.ToUs = int64(max(c.At, v.Now()).Add(c.Length))
		}
	}
	return e
}
