package plan

import (
	"iter"

	"github.com/musterdl/muster/model/unit"
)

// What those ask who look at many jobs or runs: Job and Run copy a row of several hundred
// bytes.

// RunOf returns the run that a job has or is promised; None without.
func (v View) RunOf(id JobID) RunID { return v.s.Jobs[id].Run }

// Stands returns a job's phase, its run and why it is where it is.
func (v View) Stands(id JobID) (phase Phase, run RunID, why ReasonCode) {
	j := &v.s.Jobs[id]
	return j.Phase, j.Run, j.Reason.Code
}

// Shapes is the number of shapes.
func (v View) Shapes() int { return len(v.s.Shapes) }

// Kind returns what a job asked for and what is known of it beside: jobs of which both are the
// same are alike but for their progress.
func (v View) Kind(id JobID) (shape, profile int32) {
	j := &v.s.Jobs[id]
	return j.Shape, j.Profile
}

// Priority returns a job's priority.
func (v View) Priority(id JobID) int32 { return v.s.Jobs[id].Priority }

// Believed returns a job's estimate, its time limit and its run.
func (v View) Believed(id JobID) (estimate, limit unit.Duration, run RunID) {
	j := &v.s.Jobs[id]
	return j.Estimate, j.TimeLimit, j.Run
}

// Works returns how a run stands and on how many workers.
func (v View) Works(id RunID) (status RunStatus, workers int32) {
	r := &v.s.Runs[id]
	return r.Status, r.Workers
}

// JobOf returns whose run it is.
func (v View) JobOf(id RunID) JobID { return v.s.Runs[id].Job }

// Blockers are the jobs that one comes after and that have not ended: of the copies of an array, which are alike, the first.
func (v View) Blockers(id JobID) iter.Seq[JobID] {
	return func(yield func(JobID) bool) {
		for i := 0; i < len(v.s.Links) && v.s.Jobs[id].Blockers > 0; i++ {
			if l := &v.s.Links[i]; l.After == id && l.Fate() == Open && !yield(l.first(v.s.Jobs)) {
				return
			}
		}
	}
}
