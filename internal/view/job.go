package view

import (
	"fmt"
	"iter"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

// JobOf describes one job.
func JobOf(v plan.View, info plane.JobInfo, id plan.JobID) Job {
	j, shape := v.Job(id), v.Shape(id)
	devices := shape.Milli(shape.Gang)
	if shape.Devices == 0 {
		devices = 0
	}
	waited := v.WaitedFor(id)
	until := v.Now()
	if j.Phase.Over() {
		until = j.Ended
	}
	out := Job{ID: int32(id), Name: v.Name(id), Phase: j.Phase.String(), Reason: reason(v, id).Words(v),
		Priority: j.Priority, Gang: shape.Gang, Devices: whole(devices),
		Submitted: instant(j.Submit), Started: instant(j.Started), Ended: instant(j.Ended),
		WaitedSec: waited.Seconds(), RanSec: max(0, until.Sub(j.Submit)-waited).Seconds(),
		EstimateSec: j.Estimate.Seconds(), TimeLimitSec: j.TimeLimit.Seconds(),
		Attempt: j.Attempt, Preemptions: j.Preemptions, Restarts: j.Restarts,
		Progress: float64(j.Progress) / 1e6, FirstLoss: info.FirstLoss, LastLoss: info.LastLoss}
	if j.Phase == plan.Finished {
		out.Progress = 1
	}
	if w := info.Spec; w != nil {
		out.Tenant, out.User, out.After, out.Command, out.Dir = w.Tenant, w.User, w.After, w.Command, w.Dir
	}
	if j.Run != plan.None {
		out.Run, out.Where = v.Run(j.Run).Status.String(), where(v, j.Run)
	}
	return out
}

// reason is why a job is where it is at this moment. What the order recorded of the
// room may be old; only one job of each shape is tried, so the others have no record.
func reason(v plan.View, id plan.JobID) plan.Reason {
	r := v.Job(id).Reason
	if v.Job(id).Phase != plan.Waiting {
		return r
	}
	switch r.Code {
	case plan.NoRoom, plan.Fragmented, plan.Unsatisfiable:
		return compose.Why(v, id)
	case plan.New, plan.MadeWayFor, plan.RunFailed, plan.SliceOver, plan.RoundPlan:
		if now := compose.Why(v, id); now.Code != plan.Fragmented {
			return now // there are too few devices, whatever else may be in the way
		}
	}
	return r
}

// where lists what a run holds, node by node. Devices that are shared differently on
// one node would be two places.
func where(v plan.View, run plan.RunID) []Place {
	var places []Place
	last := plan.NodeID(plan.None)
	v.GrantsOf(run, func(g plan.Grant) {
		share := 0.0
		if g.Device != plan.None && g.Reserve < 1000 {
			share = whole(g.Reserve)
		}
		if n := len(places); g.Node != last || places[n-1].Share != share {
			places = append(places, Place{Node: v.Cluster().Nodes[g.Node].Name, Share: share})
			last = g.Node
		}
		if g.Device != plan.None {
			p := &places[len(places)-1]
			p.Devices = append(p.Devices, int32(g.Device-v.Node(g.Node).First))
		}
	})
	return places
}

// Why says what keeps a job from running, or where it stands otherwise: one sentence
// first, then what is behind it.
type Why struct {
	Job    string   `json:"job"`
	Phase  string   `json:"phase"`
	Reason string   `json:"reason"`
	Detail []string `json:"detail,omitempty"`

	Needs float64 `json:"needs"` // devices, at its smallest size
	Free  float64 `json:"free"`  // of the models it may use, parts included
	Exist float64 `json:"exist"`
	// Ahead is the job that must go first, where there is one.
	Ahead string `json:"ahead,omitempty"`
	// Earlier counts the waiting jobs that were submitted before this one, and Alike
	// those of the same shape among them.
	Earlier int `json:"earlier"`
	Alike   int `json:"alike"`
}

// WhyOf explains a job; live are the jobs that have not ended, in any order.
func WhyOf(v plan.View, info plane.JobInfo, id plan.JobID, live iter.Seq[plan.JobID]) Why {
	j, shape := v.Job(id), v.Shape(id)
	r := reason(v, id)
	smallest := shape.Gang
	if shape.Elastic() {
		smallest = min(smallest, shape.Sizes[0])
	}
	w := Why{Job: v.Name(id), Phase: j.Phase.String(), Reason: sentence(v, id, r),
		Free: whole(v.Room().FreeMilli(shape.Models)), Exist: float64(v.Room().All(shape.Models))}
	if shape.Devices > 0 {
		w.Needs = whole(shape.Milli(smallest))
	}
	switch r.Code {
	case plan.Behind, plan.WaitsForJob:
		if r.A >= 0 && r.A < int64(v.Jobs()) {
			w.Ahead = v.Name(plan.JobID(r.A))
		}
	}
	if !j.Phase.Waits() {
		return w
	}
	for other := range live {
		if o := v.Job(other); o.Phase == plan.Waiting && other < id {
			w.Earlier++
			if o.Shape == j.Shape {
				w.Alike++
			}
		}
	}
	w.Detail = detail(v, info, id, &w)
	return w
}

// sentence puts the phase in front of the reason, where the reason alone does not say it.
func sentence(v plan.View, id plan.JobID, r plan.Reason) string {
	j, words := v.Job(id), r.Words(v)
	switch {
	case j.Phase == plan.Waiting && r.Code == plan.New:
		return "it was just submitted, or nothing has been decided since"
	case j.Phase == plan.Active:
		return v.Run(j.Run).Status.String() + ": " + words
	case j.Phase == plan.Finished:
		return "finished"
	case j.Phase.Over():
		return j.Phase.String() + ": " + words
	}
	return words
}

// detail lists the counts behind a reason to wait.
func detail(v plan.View, info plane.JobInfo, id plan.JobID, w *Why) []string {
	j, shape := v.Job(id), v.Shape(id)
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case shape.Devices == 0:
		say("needs %d workers with %s cores and %s each, and no device", shape.Gang, unit.Milli(shape.CPU), unit.MiB(shape.Host))
	case shape.Share < 1000:
		say("needs %s: %d workers with %s of a device each", devices(w.Needs), shape.Gang, unit.Milli(shape.Share))
	default:
		say("needs %s together: %d workers with %d each", devices(w.Needs), shape.Gang, shape.Devices)
	}
	say("%s of %s it may use %s free", number(w.Free), devices(w.Exist), isAre(w.Free))
	if closed := closedNodes(v); closed > 0 {
		say("%s no new runs", count(closed, "node takes", "nodes take"))
	}
	if w.Ahead != "" {
		say("%s goes first", w.Ahead)
	}
	if j.Phase == plan.Waiting {
		say("%s submitted earlier, %d of the same shape", count(w.Earlier, "waiting job was", "waiting jobs were"), w.Alike)
	}
	say("has waited %s in all", Span(v.WaitedFor(id)))
	if n := len(info.Dossier); n > 0 {
		e := &info.Dossier[n-1]
		say("last decision, %s ago: %s, %s", Span(v.Now().Sub(e.At)), e.Verb, e.Words)
	}
	return lines
}

func closedNodes(v plan.View) (n int) {
	for id := range plan.NodeID(v.Nodes()) {
		if v.Node(id).Status != plan.Up {
			n++
		}
	}
	return n
}
