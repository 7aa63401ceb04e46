package world

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
)

// truePlan is what a plan truly comes to: its part of the ideal rate, and what it leaves of the
// run's devices.
type truePlan struct {
	rate  float64
	spare workload.Spare
}

// planned is how near a pipeline plan comes to the ideal of its stages always
// busy: the truth about a plan is its own iteration run through the task graph on the
// job's true layers, of which the planner has only what was measured. A job's true
// duration is meant for the ideal.
//
// The ideal is that on the slowest device of the run: where others are faster, a plan that
// gives them more layers comes to more than one that does not.
func (w *World) planned(v plan.View, run plan.RunID, job plan.JobID, id int32) truePlan {
	if id == plan.None || v.Pipeline(id).JSON == nil || v.ProfileOf(job).Stages == 0 {
		return truePlan{rate: 1} // it is only brought in groups, or its menu says how fast it goes by the plan
	}
	ranks := int(v.ProfileOf(job).Stages)
	speeds, links := w.speeds(v, run, ranks), w.linked(v, run, ranks)
	k := planKey{plan: id, job: plan.None, drifts: w.truth[job].drifts}
	if !w.asBelieved(v, job) || k.drifts > 0 {
		k.job = job
	}
	if speeds != nil || links != nil {
		k.on = fmt.Sprint(speeds)
		if links != nil {
			k.on += fmt.Sprint(links.Nodes, links.Racks)
		}
	}
	if known, seen := w.plans[k]; seen {
		return known
	}
	if w.plans == nil {
		w.plans = map[planKey]truePlan{}
	}
	var p pipeline.Plan
	w.plans[k] = truePlan{rate: 1}
	if json.Unmarshal(v.Pipeline(id).JSON, &p) == nil {
		profile := v.Profile(v.Job(job).Profile)
		on := pipeline.Params{}
		if len(speeds) == len(p.Orders) {
			on.Speeds = speeds
		}
		if links != nil && links.Len() == len(p.Orders) {
			on.Links = links.Links()
		}
		w.plans[k] = efficiency(w.Layers(v, job), w.drifted(v, job), p, profile, on)
	}
	return w.plans[k]
}

// planKey is what a plan's rate depends on: the job, where its layers are not as believed, and
// what the run stands on, where its devices are unlike or its links have an end.
type planKey struct {
	plan   int32
	job    plan.JobID
	drifts int
	on     string
}

// speeds are those of a plan's ranks where they are unlike, relative to the slowest.
func (w *World) speeds(v plan.View, run plan.RunID, ranks int) []float64 {
	if len(w.c.Models) == 1 && w.slow.begun == nil {
		return nil
	}
	return pipeline.Unlike(w.paces(v, run, ranks))
}

// linked are the devices of a plan's ranks with the links between them as they truly are, where they
// have an end. What others send over them at the same time is not in it, and of one that is down nobody
// knows here who waits.
func (w *World) linked(v plan.View, run plan.RunID, ranks int) *parallel.Devices {
	n, i := int(v.Run(run).Workers*max(1, v.Shape(v.Run(run).Job).Devices)), 0
	if !w.net.Finite() || ranks == 0 || n%ranks != 0 {
		return nil
	}
	var nodes []int32
	v.GrantsOf(run, func(g plan.Grant) {
		if i++; (i-1)%(n/ranks) == 0 {
			nodes = append(nodes, int32(g.Node))
		}
	})
	if len(nodes) != ranks || nodes[0] == nodes[ranks-1] {
		return nil
	}
	d := parallel.Placed(w.c, nodes, nil)
	for i, n := range nodes {
		at := &d.Nodes[d.NodeOf(int32(i))]
		at.Out = w.net.Bandwidth(w.c.NodeLink(n))
		if d.Racks != nil {
			d.Racks[at.Rack] = w.net.Bandwidth(w.c.RackLink(w.c.Nodes[n].Rack))
		}
	}
	return d
}

// asBelieved reports whether the layers of a job are as they were measured, as those of others
// of its profile then are too.
func (w *World) asBelieved(v plan.View, job plan.JobID) bool {
	truth := &w.truth[job]
	if truth.belief == 0 {
		truth.belief = 1
		for i, l := range w.Layers(v, job) {
			if b := v.ProfileOf(job).Layers[i]; l.Forward != b.Forward || l.Backward != b.Backward || l.ParamKiB != b.ParamKiB || l.OutputKiB != b.OutputKiB || l.ActivationKiB != b.ActivationKiB {
				truth.belief = -1
			}
		}
	}
	return truth.belief > 0
}

// Layers are what the layers of a job truly are: what nobody knows better is as believed.
func (w *World) Layers(v plan.View, job plan.JobID) []workload.Layer {
	believed, known := v.ProfileOf(job).Layers, w.truth[job].layers
	all := make([]workload.Layer, len(believed))
	for i, l := range believed {
		var t workload.Layer
		if i < len(known) {
			t = known[i]
		}
		all[i] = workload.Layer{Forward: cmp.Or(t.Forward, l.Forward), Backward: cmp.Or(t.Backward, l.Backward), ParamKiB: cmp.Or(t.ParamKiB, l.ParamKiB),
			OutputKiB: cmp.Or(t.OutputKiB, l.OutputKiB), ActivationKiB: cmp.Or(t.ActivationKiB, l.ActivationKiB)}
	}
	return all
}

// efficiency is of a plan on layers as they are now, against the ideal on those that the job's true
// duration is meant for.
func efficiency(layers, now []workload.Layer, p pipeline.Plan, asked plan.Profile, on pipeline.Params) truePlan {
	var work unit.Duration
	for _, l := range layers {
		work += l.Forward + l.Backward
	}
	run, why := pipeline.Simulate(now, p, on)
	if why != "" || run.Iteration <= 0 {
		return truePlan{rate: 1}
	}
	ideal := float64(work) * float64(asked.Microbatches) / float64(max(1, asked.Stages))
	return truePlan{ideal / float64(run.Iteration), run.Spare}
}

// byPlan puts on links what a run sends by the plan of its offer, in the place of what its job says of itself: each node
// sends to others, and where they are in other racks those that have a neighbour there. How much, and how long a
// step is with less than the whole link, is in the offer as it truly is or, where nobody knows better, as believed.
//
// It reports whether there is such a plan, on several nodes.
func (w *World) byPlan(v plan.View, id plan.RunID, x *run, kind int32) bool {
	workers := v.Run(id).Workers
	s := w.truth[x.job].menu.Spread(kind, workers, true)
	if len(s.Shares) == 0 {
		s = v.Menu(x.job).Spread(kind, workers, true)
	}
	if s.Sends == 0 || len(s.Shares) < 2 {
		return false
	}
	var nodes []plan.NodeID
	v.GrantsOf(id, func(g plan.Grant) {
		if len(nodes) == 0 || nodes[len(nodes)-1] != g.Node {
			nodes = append(nodes, g.Node)
		}
	})
	if len(nodes) < 2 {
		return false
	}
	demand, narrowest := w.net.Row(nodes)
	if math.IsInf(narrowest, 1) {
		return false // no link has an end
	}
	x.sends.Shares, x.sends.Sends, x.sends.Demand = s.Shares, min(1, float64(s.Sends)/narrowest), demand
	return true
}
