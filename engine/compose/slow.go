package compose

import (
	"slices"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// What holds a run up that goes by the plan of its offer, and how its job keeps away from that.

// heldUp is how many times as long a step takes for what was seen of the devices and links of a run, and the
// nodes that hold it up by more than a part: all wait for the slowest device, and the offer says how long a
// step takes with part of a link.
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

// react keeps how a job's run went on, with the nodes that it has left as slow by now: those with this
// reaction until they are expected to be repaired, and those before.
func (s *Scheduler) react(d *plan.Draft, r plan.Reaction, slow []plan.NodeID) {
	r.At, r.Left = d.Now(), slices.DeleteFunc(avoided(d.View, r.Job), func(l plan.Leaving) bool { return slices.Contains(slow, l.Node) })
	if r.Chosen == reaction.Swap || r.Chosen == reaction.Restart {
		for _, n := range slow {
			r.Left = append(r.Left, plan.Leaving{Node: n, Until: d.Now().Add(d.Repair(s.parts.Reaction.Setting().Repair))})
		}
	}
	d.React(r)
}

// avoided are the nodes that a job left as slow, and that are not expected to be repaired yet.
func avoided(v plan.View, job plan.JobID) (all []plan.Leaving) {
	r, _ := v.Reaction(job)
	for _, l := range r.Left {
		if l.Until > v.Now() {
			all = append(all, l)
		}
	}
	return all
}

// avoiding is what is held from a job whenever it has the choice: slow nodes, and those that it left as slow
// before. A job that waits in its queue takes what there is.
func avoiding(v plan.View, job plan.JobID, slow ...plan.NodeID) (holds []plan.Hold) {
	nodes := slices.Clone(slow)
	for _, l := range avoided(v, job) {
		if !slices.Contains(nodes, l.Node) {
			nodes = append(nodes, l.Node)
		}
	}
	for _, n := range nodes {
		holds = append(holds, plan.Hold{Node: n, Devices: v.Node(n).Count, Shared: true})
	}
	return holds
}
