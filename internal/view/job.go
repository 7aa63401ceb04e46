package view

import (
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/obstacle"
)

// JobOf describes one job.
func JobOf(v plan.View, info plane.JobInfo, id plan.JobID) Job {
	j, shape := v.Job(id), v.Shape(id)
	devices := shape.Milli(shape.Gang)
	if shape.Devices == 0 {
		devices = 0
	}
	why, never := reason(v, id)
	waited := v.WaitedFor(id)
	until := v.Now()
	if j.Phase.Over() {
		until = j.Ended
	}
	out := Job{ID: int32(id), Name: v.Name(id), Phase: j.Phase.String(), Reason: withFailure(v, info, id, why), Never: never, Failure: failureOf(v, info),
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
	out.Queue = queueName(v, id)
	if run := v.Present(id); run != plan.None {
		out.Run, out.Where = v.Run(run).Status.String(), where(v, run)
	}
	return out
}

// reason is why a job is where it is at this moment. What the order recorded of the
// room may be old; only one job of each shape is tried, so the others have no record.
func reason(v plan.View, id plan.JobID) (words string, never bool) {
	if v.Job(id).Phase != plan.Waiting {
		return v.Job(id).Reason.Words(v), false
	}
	if words := explain.Never(v, id); words != "" {
		return words, true
	}
	return room(v, id).Words(v), false
}

// room is the reason of a job that waits and could start.
func room(v plan.View, id plan.JobID) plan.Reason {
	r := v.Job(id).Reason
	switch r.Code {
	case plan.NoRoom, plan.Fragmented, plan.Unsatisfiable:
		return obstacle.Room(v, id)
	case plan.New, plan.MadeWayFor, plan.RunFailed, plan.SliceOver, plan.RoundPlan:
		if now := obstacle.Room(v, id); now.Code != plan.Fragmented {
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
