package pipelines

import (
	"slices"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// A run that goes by the plan of its offer may be held up by slow devices and links. Here is how much, and how its
// job keeps away from them.

// heldUp returns by what factor slow devices and links lengthen a step of a run, and the nodes where that is more
// than the skew. All workers wait for the slowest device. The run's offer says how long a step takes with part of a
// link.
func heldUp(v plan.View, run plan.RunID, o *schedule.Observation, kind int32, skew float64) (times float64, nodes []plan.NodeID) {
	is := v.Run(run)
	shares := v.Menu(is.Job).Spread(kind, is.Workers, true).Shares
	link := func(times float64) float64 {
		if len(shares) < 2 || times <= 1 {
			return 1
		}
		return float64(workload.StepAt(shares, 1/times)) / float64(workload.StepAt(shares, 1))
	}
	at := func(of []float64, i int) float64 {
		if i < len(of) {
			return of[i]
		}
		return 1 // not probed
	}
	each, i := int(max(1, v.Shape(is.Job).Devices)), 0
	device, wire := 1., 1.
	v.GrantsOf(run, func(g plan.Grant) {
		slow, late := at(o.Slow, i/each), link(at(o.Links, i/each))
		if i++; max(slow, late) > 1+skew && !slices.Contains(nodes, g.Node) {
			nodes = append(nodes, g.Node)
		}
		device, wire = max(device, slow), max(wire, late)
	})
	return device * wire, nodes
}

// keep keeps how a job's run went on, with the nodes that it has left as slow by now: those with this
// reaction until they are expected to be repaired, and those before.
func (s *Reactions) keep(d *plan.Draft, r plan.Reaction, slow []plan.NodeID) {
	r.At, r.Left = d.Now(), slices.DeleteFunc(Avoided(d.View, r.Job), func(l plan.Leaving) bool { return slices.Contains(slow, l.Node) })
	if r.Chosen == reaction.Swap || r.Chosen == reaction.Restart {
		for _, n := range slow {
			r.Left = append(r.Left, plan.Leaving{Node: n, Until: d.Now().Add(d.Repair(s.policy.Setting().Repair))})
		}
	}
	d.React(r)
}

// Avoided are the nodes that a job left as slow, and that are not expected to be repaired yet.
func Avoided(v plan.View, job plan.JobID) (all []plan.Leaving) {
	r, _ := v.Reaction(job)
	for _, l := range r.Left {
		if l.Until > v.Now() {
			all = append(all, l)
		}
	}
	return all
}

// Avoiding is what is held from a job whenever it has the choice: slow nodes, and those that it left as slow
// before. A job that waits in its queue takes what there is.
func Avoiding(v plan.View, job plan.JobID, slow ...plan.NodeID) (holds []plan.Hold) {
	nodes := slices.Clone(slow)
	for _, l := range Avoided(v, job) {
		if !slices.Contains(nodes, l.Node) {
			nodes = append(nodes, l.Node)
		}
	}
	for _, n := range nodes {
		holds = append(holds, plan.Hold{Node: n, Devices: v.Node(n).Count, Shared: true})
	}
	return holds
}
