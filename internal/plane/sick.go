package plane

import (
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
)

// Quarantine is a node that takes no runs because starts failed there.
type Quarantine struct {
	Node  plan.NodeID
	Trial plan.Trial // when one start is let in again
	Why   []string   // the latest failures, the last one last; none of before this plane started
}

// toldCauses is how many of the failures of a node are kept.
const toldCauses = 3

// Quarantines are the nodes in quarantine; call it inside Query.
func (p *Plane) Quarantines() (list []Quarantine) {
	v := p.engine.View()
	for id := range plan.NodeID(v.Nodes()) {
		if n := v.Node(id); n.Status == plan.Quarantined {
			list = append(list, Quarantine{id, n.Trial, slices.Clone(p.failed[id])})
		}
	}
	return list
}

// noteFailed keeps why starts failed, by node.
func (p *Plane) noteFailed(events []engine.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind != engine.NotStarted || e.Class != plan.StartFailure || e.Failure == nil || e.Failure.Node == plan.None {
			continue
		}
		if p.failed == nil {
			p.failed = map[plan.NodeID][]string{}
		}
		list := append(p.failed[e.Failure.Node], e.Failure.Why)
		p.failed[e.Failure.Node] = list[max(0, len(list)-toldCauses):]
	}
}

// tellSick logs which nodes were quarantined in a step and why, and which came back.
func (p *Plane) tellSick(out *engine.Out) {
	c := p.engine.View().Cluster()
	for _, id := range out.Closed {
		n := p.engine.View().Node(id)
		p.config.Log.Warn("a node is quarantined: starts failed there in a row", "node", c.Nodes[id].Name, "failed", n.Sick, "why", p.failed[id],
			"tried-again-in", n.Trial.At.Sub(p.engine.View().Now()))
	}
	for _, id := range out.Opened {
		p.config.Log.Info("a node is back from quarantine: a start has gone well", "node", c.Nodes[id].Name)
		delete(p.failed, id)
	}
}
