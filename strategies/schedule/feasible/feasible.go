// Package feasible refuses jobs whose deadlines cannot be met: by the calendar of what
// runs, what has claims and what is closed, a job that would end too late even if it
// were the next to start is told so at once, with the earliest end there could be. It
// follows the feasibility test with which Chronus (Gao et al., SoCC 2021) admits jobs;
// it promises nothing to those it admits, which others may still pass.
package feasible

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
)

// Gate refuses what cannot be in time. It is used again from one job to the next.
type Gate struct{}

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "feasible", System: "", Part: schedule.GatePart, Status: "after",
	Source: "Chronus (Gao et al., SoCC 2021), feasibility test only",
	Idea:   "a job that would miss its deadline even if it were the next to start is refused, with the earliest end there could be",
	Goal:   "deadline", Needs: "run time", Live: "as simulated",
}

// AllDescription is that of the null.
var AllDescription = strategy.Description{
	Name: "admit-all", Part: schedule.GatePart, Status: "null",
	Source: "what one does without", Idea: "whoever asks is let in", Goal: "throughput", Needs: "nothing", Live: "as simulated",
}

// All admits everybody.
type All struct{}

// Admit implements schedule.Gate.
func (All) Admit(plan.View, plan.JobID) (bool, plan.Reason) { return true, plan.Reason{} }

// Admit implements schedule.Gate. A job of which nobody knows how long it takes, or
// that could never start, is let in: what is wrong with it is not its deadline.
func (Gate) Admit(v plan.View, job plan.JobID) (bool, plan.Reason) {
	j := v.Job(job)
	if j.Deadline == 0 {
		return true, plan.Reason{}
	}
	shape := v.Shape(job)
	workers := shape.Most()
	if !shape.Elastic() {
		workers = shape.Gang
	}
	length := calendar.Length(v, job, workers)
	if length == unit.Forever {
		return true, plan.Reason{}
	}
	end, ok := earliest(v, job, workers, length)
	if needs := end.Sub(j.Submit); ok && needs > j.Deadline {
		return false, plan.Reason{Code: plan.NotFeasible, A: int64(needs)}
	}
	return true, plan.Reason{}
}

// earliest is the earliest end of a job beside what runs, has claims and is closed.
func earliest(v plan.View, job plan.JobID, workers int32, length unit.Duration) (unit.Time, bool) {
	var c calendar.Calendar
	for i, claim := range v.Claims() {
		c.Insert(i, claim)
	}
	c.SetWindows(v.Windows())
	c.Look(v, func(run plan.RunID) (unit.Time, bool) { return calendar.Ends(v, run), false })
	claim, ok := c.Earliest(job, workers, length)
	if !ok || claim.At == unit.Never {
		return 0, false
	}
	return max(claim.At, v.Now()).Add(length), true
}
