package calendar

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/remaining"
)

// Length is how long a run of a job on so many workers is expected to take from now
// on: by its estimate, doubled as often as it has been outlived; without one until
// its time limit; else Forever.
func Length(v plan.View, job plan.JobID, workers int32) unit.Duration {
	length := unit.Forever
	if left, _, known := remaining.Of(v, job); known {
		length = max(1, left)
		if gang := v.Shape(job).Gang; workers != gang && workers > 0 {
			length = (length*unit.Duration(gang) + unit.Duration(workers) - 1) / unit.Duration(workers)
		}
	}
	if _, limit, _ := v.Believed(job); limit > 0 {
		length = min(length, limit)
	}
	return length
}

// Ends is when a run is expected to end: Never if nothing is known.
func Ends(v plan.View, run plan.RunID) unit.Time {
	r := v.Run(run)
	return ends(v, &r, Length(v, r.Job, r.Workers))
}

// Told is Ends as people are told it: what the job reports of its progress counts too.
func Told(v plan.View, run plan.RunID) unit.Time {
	r := v.Run(run)
	believed, _, known := remaining.Of(v, r.Job)
	if known {
		believed += remaining.Done(v, r.Job)
	}
	left, reported := remaining.Reported(v, r.Job, believed)
	if !reported {
		return Ends(v, run)
	}
	if gang := v.Shape(r.Job).Gang; r.Workers > 0 {
		left = left * unit.Duration(gang) / unit.Duration(r.Workers)
	}
	return ends(v, &r, max(1, left))
}

// ends is when a run ends that takes so long from now on, or at its time limit.
func ends(v plan.View, r *plan.Run, length unit.Duration) unit.Time {
	end := v.Now().Add(length)
	if _, limit, _ := v.Believed(r.Job); limit > 0 && r.Began != unit.Never {
		end = min(end, max(r.Began.Add(limit), v.Now()+1))
	}
	return end
}

// Expected is Ends as who decides asks for it. What is left of a run that does not compute
// yet does not shrink: without a least time ahead, one of which nothing is left would be
// looked at again every microsecond while it is started. What is expected of a run that computes
// on as many workers as its estimate is of is steady: it gets on by as much as time does.
func Expected(v plan.View, run plan.RunID) (end unit.Time, steady bool) {
	r := v.Run(run)
	end = ends(v, &r, Length(v, r.Job, r.Workers))
	if r.Status != plan.Running {
		return max(end, v.Now().Add(unit.Second)), false
	}
	estimate, _, _ := v.Believed(r.Job)
	shape := v.Shape(r.Job)
	return end, estimate <= 0 || !shape.Elastic() && r.Workers == shape.Gang
}
