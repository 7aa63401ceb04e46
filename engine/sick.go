package engine

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// quarantines are the nodes that are closed because starts failed on them.
type quarantines struct {
	next           unit.Time     // when the next start is tried on one of them
	closed, opened []plan.NodeID // in this step
	known          unit.Time     // of a trial that has just failed: when the next is; 0 is none
}

// findNext finds out anew when the next start is tried: never where a pause of 0 leaves nodes closed.
func (q *quarantines) findNext(s *plan.State, policy *Policy) {
	q.next = unit.Never
	if policy.SickPause == 0 {
		return
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Status == plan.Quarantined && !n.Trial.On {
			q.next = min(q.next, n.Trial.At)
		}
	}
}

// tryNodes lets one start in on each quarantined node whose pause is over: the Draft closes the node
// again behind the first that it takes. It notes in why that there is room.
func (q *quarantines) tryNodes(s *plan.State, policy *Policy, why *schedule.Trigger) {
	if q.next > s.Now {
		return
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Status == plan.Quarantined && !n.Trial.On && n.Trial.At <= s.Now {
			n.Trial.On, why.Room = true, true
			s.SetNode(plan.NodeID(i), plan.Up)
		}
	}
	q.findNext(s, policy)
}

// markSick counts a failed start against the nodes it was on.
func (q *quarantines) markSick(s *plan.State, policy *Policy, run plan.RunID) {
	closed := len(q.closed)
	eachNodeOf(s, run, func(id plan.NodeID, n *plan.Node) {
		n.Sick++
		tried := n.Trial.On && n.Status == plan.Quarantined && n.Trial.Run == run
		if !tried && (n.Sick < policy.SickNode || n.Status != plan.Up) {
			return
		}
		if n.Trial.On {
			n.Trial.Failed++
		}
		s.SetNode(id, plan.Quarantined)
		n.Trial.On, n.Trial.At = false, s.Now.Add(policy.sickPause(n.Trial.Failed))
		if q.closed = append(q.closed, id); tried {
			q.known = max(q.known, n.Trial.At)
		}
	})
	if len(q.closed) > closed {
		q.findNext(s, policy)
	}
}

// sickPause is how long no start is tried after so many trials that failed: twice as long after each.
func (p *Policy) sickPause(failed int32) unit.Duration {
	pause := p.SickPause
	for i := int32(0); i < failed && pause < p.BackOffMost; i++ {
		pause *= 2
	}
	return pause
}

// clearSick ends the quarantine of the nodes that a run has started on, and notes in why that there is room.
func (q *quarantines) clearSick(s *plan.State, policy *Policy, run plan.RunID, why *schedule.Trigger) {
	opened := len(q.opened)
	eachNodeOf(s, run, func(id plan.NodeID, n *plan.Node) {
		n.Sick = 0
		if n.Status == plan.Quarantined && policy.SickPause > 0 {
			s.SetNode(id, plan.Up)
			q.opened, why.Room = append(q.opened, id), true
		}
		n.Trial = plan.Trial{}
	})
	if len(q.opened) > opened { // a start on sound nodes looks at these alone
		q.findNext(s, policy)
	}
}

// eachNodeOf calls f for the nodes of a run, each once where its grants on it follow each other.
func eachNodeOf(s *plan.State, run plan.RunID, f func(plan.NodeID, *plan.Node)) {
	last := plan.NodeID(plan.None)
	s.View().GrantsOf(run, func(g plan.Grant) {
		if g.Node != last {
			last = g.Node
			f(g.Node, &s.Nodes[g.Node])
		}
	})
}
