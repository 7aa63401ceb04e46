package engine

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// quarantines are the nodes that are closed because starts failed on them.
type quarantines struct {
	next           unit.Time     // when the next start is tried on one of them
	closed, opened []plan.NodeID // in this step
	known          unit.Time     // of a trial that has just failed: when the next is; 0 is none
}

// look finds out anew when the next start is tried.
func (q *quarantines) look(s *plan.State) {
	q.next = unit.Never
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Status == plan.Quarantined && !n.Trial.On {
			q.next = min(q.next, n.Trial.At)
		}
	}
}

// nextTrial is when a start is to be tried on a quarantined node.
func (e *Engine) nextTrial() unit.Time {
	if e.policy.SickPause == 0 {
		return unit.Never
	}
	return e.sick.next
}

// tryNodes lets one start in on each quarantined node whose pause is over: the Draft closes the node again behind
// the first that it takes.
func (e *Engine) tryNodes() {
	if e.nextTrial() > e.state.Now {
		return
	}
	for i := range e.state.Nodes {
		if n := &e.state.Nodes[i]; n.Status == plan.Quarantined && !n.Trial.On && n.Trial.At <= e.state.Now {
			n.Trial.On = true
			e.state.SetNode(plan.NodeID(i), plan.Up)
			e.why.Room = true
		}
	}
	e.sick.look(e.state)
}

// markSick counts a failed start against the nodes it was on.
func (e *Engine) markSick(run plan.RunID) {
	e.eachNodeOf(run, func(id plan.NodeID, n *plan.Node) {
		n.Sick++
		tried := n.Trial.On && n.Status == plan.Quarantined && n.Trial.Run == run
		if !tried && (n.Sick < e.policy.SickNode || n.Status != plan.Up) {
			return
		}
		if n.Trial.On {
			n.Trial.Failed++
		}
		e.state.SetNode(id, plan.Quarantined)
		pause := e.policy.SickPause // twice as long after each trial that failed
		for i := int32(0); i < n.Trial.Failed && pause < e.policy.BackOffMost; i++ {
			pause *= 2
		}
		n.Trial.On, n.Trial.At = false, e.state.Now.Add(pause)
		if e.sick.closed = append(e.sick.closed, id); tried {
			e.sick.known = max(e.sick.known, n.Trial.At)
		}
	})
	e.sick.look(e.state)
}

// clearSick ends the quarantine of the nodes that a run has started on.
func (e *Engine) clearSick(run plan.RunID) {
	e.eachNodeOf(run, func(id plan.NodeID, n *plan.Node) {
		n.Sick = 0
		if n.Status == plan.Quarantined && e.policy.SickPause > 0 {
			e.state.SetNode(id, plan.Up)
			e.sick.opened = append(e.sick.opened, id)
			e.why.Room = true
		}
		n.Trial = plan.Trial{}
	})
	e.sick.look(e.state)
}

// eachNodeOf calls f for the nodes of a run, each once where its grants on it follow each other.
func (e *Engine) eachNodeOf(run plan.RunID, f func(plan.NodeID, *plan.Node)) {
	last := plan.NodeID(plan.None)
	e.View().GrantsOf(run, func(g plan.Grant) {
		if g.Node != last {
			last = g.Node
			f(g.Node, &e.state.Nodes[g.Node])
		}
	})
}
