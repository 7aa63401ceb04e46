package view

import (
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// JobOf describes one job, of those that a site knows.
func JobOf(v plan.View, info plane.JobInfo, id plan.JobID, site *explain.Site) Job {
	j, shape := v.Job(id), v.Shape(id)
	devices := shape.Milli(shape.Gang)
	if shape.Devices == 0 {
		devices = 0
	}
	why := site.Cause(id)
	waited := v.WaitedFor(id)
	until := v.Now()
	if j.Phase.Over() {
		until = j.Ended
	}
	out := Job{ID: int32(id), Name: v.Name(id), Phase: j.Phase.String(), Reason: withFailure(v, info, id, why.Words), Never: why.Never, Failure: failureOf(v, info),
		Priority: j.Priority, Gang: shape.Gang, Devices: whole(devices),
		Times: Times{Submitted: instant(j.Submit), Started: instant(j.Started), Ended: instant(j.Ended),
			WaitedSec: waited.Seconds(), RanSec: max(0, until.Sub(j.Submit)-waited).Seconds(),
			EstimateSec: j.Estimate.Seconds(), TimeLimitSec: j.TimeLimit.Seconds()},
		Course: Course{Attempt: j.Attempt, Preemptions: j.Preemptions, Restarts: j.Restarts,
			Progress: float64(j.Progress) / 1e6, FirstLoss: info.FirstLoss, LastLoss: info.LastLoss}}
	if j.Phase == plan.Finished {
		out.Progress = 1
	}
	if j.Phase == plan.Active {
		if end := calendar.Told(v, j.Run); end != unit.Never {
			out.LeftSec = end.Sub(v.Now()).Seconds()
		}
	}
	if w := info.Spec; w != nil {
		out.Tenant, out.User, out.After, out.Command, out.Dir = w.Tenant, w.User, w.After, w.Command, w.Dir
	}
	out.Queue, out.Pipeline, out.Reaction = queueName(v, id), pipelineOf(v, info, id), reactedOf(v, id)
	out.Saving, out.Due = savingOf(&j), dueOf(v, id)
	if run := v.Present(id); run != plan.None {
		out.Run, out.Where = v.Run(run).Status.String(), where(v, run)
	}
	return out
}

// savingOf says of a job that did not save when it was asked to what that means for it.
func savingOf(j *plan.Job) string {
	if !j.Checkpoint.Failed {
		return ""
	}
	kept := "all its work"
	if j.Checkpoint.Every > 0 {
		kept = "what it has not saved by itself"
	}
	return "it saved nothing when it was last asked to: it counts as one that loses " + kept + " when it is stopped, until it saves when asked"
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
