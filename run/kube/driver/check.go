package driver

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/filter"
)

// fits looks a last time whether pods may go where the engine put them; where one may
// not the run is given up, and that node left alone for a while.
func (rn *runs) fits(e *entry, fresh []int) bool {
	if rn.config.Filter == nil {
		return rn.hasRoom(e, fresh)
	}
	placed := make([]filter.Placed, 0, len(fresh))
	for _, i := range fresh {
		placed = append(placed, filter.Placed{Pod: e.run.workers[i].pod.pod, Node: e.run.workers[i].node})
	}
	refusal, err := rn.config.Filter.Check(context.Background(), placed)
	switch {
	case err != nil:
		rn.config.Log.Error("a gang cannot be checked", "job", e.name, "error", err)
		rn.giveUp(e, "", err.Error())
	case refusal != nil:
		rn.giveUp(e, refusal.Node, refusal.Words())
	}
	return err == nil && refusal == nil
}

// hasRoom looks at devices alone, where nobody looks at the rest: what was promised may
// be held by pods that a node which was away has not ended.
func (rn *runs) hasRoom(e *entry, fresh []int) bool {
	for _, i := range fresh {
		w := &e.run.workers[i]
		m := rn.fleet.Machine(w.machine)
		others := slices.DeleteFunc(rn.fleet.On(w.node), func(p *corev1.Pod) bool {
			o := rn.pods[p.UID]
			return o.of == e && e.run.seatOf(o) >= 0
		})
		ours := 0
		for k := range e.run.workers {
			if e.run.workers[k].machine == w.machine {
				ours += len(e.run.workers[k].devices)
			}
		}
		if m == nil || m.Out != "" {
			rn.giveUp(e, w.node, "node "+w.node+" is out of service")
			return false
		}
		if w.share == unit.Whole && rn.fleet.Occupied(others, m.Name)+ours > m.Count {
			rn.giveUp(e, w.node, "node "+w.node+" has not let go of all its devices yet")
			return false
		}
	}
	return true
}
