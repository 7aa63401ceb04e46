package plane

import (
	"log/slog"
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

// failures are why starts failed of late, by node.
type failures map[plan.NodeID][]string

// note keeps why starts failed.
func (f *failures) note(events []engine.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind != engine.NotStarted || e.Class != plan.StartFailure || e.Failure == nil || e.Failure.Node == plan.None {
			continue
		}
		if *f == nil {
			*f = failures{}
		}
		list := append((*f)[e.Failure.Node], e.Failure.Why)
		(*f)[e.Failure.Node] = list[max(0, len(list)-toldCauses):]
	}
}

// tell logs which nodes were quarantined in a step and why, and which came back.
func (f failures) tell(out *engine.Out, v plan.View, log *slog.Logger) {
	c := v.Cluster()
	for _, id := range out.Closed {
		n := v.Node(id)
		log.Warn("a node is quarantined: starts failed there in a row", "node", c.Nodes[id].Name, "failed", n.Sick, "why", f[id],
			"tried-again-in", n.Trial.At.Sub(v.Now()))
	}
	for _, id := range out.Opened {
		log.Info("a node is back from quarantine: a start has gone well", "node", c.Nodes[id].Name)
		delete(f, id)
	}
}
