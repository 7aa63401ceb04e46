package engine

import (
	"github.com/musterdl/muster/plan"
)

// around applies what a driver says about the world beside the engine's own work.
func (e *Engine) around(ev *Event) {
	switch ev.Kind {
	case Joined:
		if ev.Nodes == nil || e.state.Grow(ev.Nodes) != nil {
			return
		}
		e.rebuild()
	case Occupied:
		if ev.Node < 0 || int(ev.Node) >= len(e.state.Nodes) || ev.Use == nil {
			return
		}
		e.state.Occupy(ev.Node, int32(ev.Use.CPU), int32(ev.Use.Memory), ev.Use.Devices)
		e.why.Room = true
	case Confined:
		if ev.Set < 1 || int(ev.Set) > len(e.state.NodeSets)+1 {
			return
		}
		e.state.Confine(ev.Set, ev.Within)
		e.confined(ev.Set)
	}
}

// assembled replaces the state. What of it had been handed over before is still to
// be confirmed by a driver that recovers.
func (e *Engine) assembled(ev *Event) {
	if ev.Image == nil {
		return
	}
	s, err := plan.Load(ev.Image.State)
	if err != nil {
		return
	}
	s.Now = max(s.Now, e.state.Now)
	*e = *Restore(s, e.sched.scheduler, e.policy)
}

// confined takes back what was promised to work on nodes that it may not be on any
// more, and lets those that wait be tried again, also those that could never start.
func (e *Engine) confined(set int32) {
	e.why.Room = true
	v := e.View()
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Waiting && v.Shape(id).NodeSet == set {
			e.touch(id)
		}
	}
	for id := range e.state.Runs {
		run := plan.RunID(id)
		if r := e.state.Runs[id]; r.Status != plan.Promised || v.Shape(r.Job).NodeSet != set {
			continue
		}
		outside := false
		v.GrantsOf(run, func(g plan.Grant) { outside = outside || !v.InSet(v.Shape(e.state.Runs[id].Job), g.Node) })
		if job := e.state.Runs[id].Job; outside {
			e.stop(job, plan.Reason{Code: plan.Superseded})
		}
	}
}
