package engine

import (
	"fmt"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// What becomes of jobs that come after others.

// called is what a name stands for: a job, or all copies of an array, which follow each other. Its Before is plan.None where
// nobody is called so.
func called(e *Engine, name string) plan.Dependency {
	if id, is := e.names[name]; is {
		return plan.Dependency{Before: id}
	}
	first, is := e.names[name+"-0"]
	if !is {
		return plan.Dependency{Before: plan.None}
	}
	l := plan.Dependency{Before: first, Copies: 1}
	for next := int(first) + 1; next < len(e.state.Names) && e.state.Names[next] == fmt.Sprintf("%s-%d", name, l.Copies); next++ {
		l.Copies++
	}
	return l
}

// comesAfter is what a job still has to wait for, and what of that can never be, if anything.
func comesAfter(e *Engine, w *workload.Job) (waits []plan.Dependency, broken *plan.Dependency) {
	for _, text := range w.After {
		name, when := workload.ParseAfter(text)
		l := called(e, name)
		l.When = when
		l.Recount(e.state.Jobs)
		switch l.Fate() {
		case plan.Broken:
			broken = &l
		case plan.Open:
			waits = append(waits, l)
		}
	}
	return waits, broken
}

// ended lets go of the jobs that come after one that has ended, or ends them too.
func (e *Engine) ended(id plan.JobID) {
	e.over = append(e.over, id)
	for i := range e.state.Links {
		l := &e.state.Links[i]
		if !l.Of(id) {
			continue
		}
		l.Count(e.state.Jobs[id].Phase, 1)
		j := &e.state.Jobs[l.After]
		if j.Phase.Over() || j.Blockers == 0 {
			continue
		}
		switch l.Fate() {
		case plan.Broken:
			if j.Phase == plan.Held {
				e.state.SetPhase(l.After, plan.Blocked, j.Reason)
			}
			e.state.SetPhase(l.After, l.Ends(), plan.Reason{Code: plan.DependencyEnd, A: int64(id)})
			e.touch(l.After)
			e.ended(l.After)
		case plan.Met:
			if j.Blockers--; j.Blockers == 0 && j.Phase == plan.Blocked {
				e.state.SetPhase(l.After, plan.Waiting, plan.Reason{Code: plan.New})
				e.touch(l.After)
			}
		}
	}
}

// livesAgain has those wait again who come after a job that had ended in some way and is put back in the queue: who waits
// for others still, and who ended since it had.
func livesAgain(e *Engine, id plan.JobID, was plan.Phase) {
	if !was.Over() {
		return
	}
	var after []plan.JobID
	for i := range e.state.Links {
		l := &e.state.Links[i]
		if !l.Of(id) {
			continue
		}
		met, j := l.Fate() == plan.Met, &e.state.Jobs[l.After]
		if l.Count(was, -1); met && j.Blockers > 0 && !j.Phase.Over() {
			j.Blockers++
		}
		after = append(after, l.After)
	}
	for _, a := range after {
		if j := &e.state.Jobs[a]; j.Phase.Over() && j.Reason.Code == plan.DependencyEnd && !brokenFor(e, a) {
			e.again(a)
			e.touch(a)
		}
	}
}

// brokenFor reports whether a job can never start since one that it comes after has ended otherwise.
func brokenFor(e *Engine, id plan.JobID) bool {
	for i := range e.state.Links {
		if l := &e.state.Links[i]; l.After == id && l.Fate() == plan.Broken {
			return true
		}
	}
	return false
}
