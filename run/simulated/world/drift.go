package world

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
)

// Layers that take other times than they did, and what it takes to go on by another plan.

// drifted are what a job's layers truly are by now.
func (w *World) drifted(v plan.View, job plan.JobID) []workload.Layer {
	layers, t := w.Layers(v, job), &w.truth[job]
	for i := range layers {
		times := 1.
		for _, d := range t.Drifts[:t.drifts] {
			if int32(i) >= d.First && int32(i) < d.End {
				times = d.Times
			}
		}
		for _, pass := range []*unit.Duration{&layers[i].Forward, &layers[i].Backward} {
			*pass = unit.Duration(math.Round(float64(*pass) * times))
		}
	}
	return layers
}

// Drifts is when the next drift of a run's job begins, as things stand; Never without.
func (w *World) Drifts(id plan.RunID) unit.Time {
	x := &w.runs[id]
	t := &w.truth[x.job]
	if t.drifts >= len(t.Drifts) || x.paused || x.rate <= 0 {
		return unit.Never
	}
	ahead := t.Drifts[t.drifts].From*float64(t.Duration) - (float64(t.Duration) - t.left + x.done)
	return x.updated.Add(unit.Duration(math.Ceil(max(0, ahead) / x.rate)))
}

// Drift begins it, and returns the runs whose end has moved. What has begun stays, whatever work is
// done again.
func (w *World) Drift(now unit.Time, v plan.View, id plan.RunID) []plan.RunID {
	w.truth[w.runs[id].job].drifts++
	return w.Regrant(now, v, id)
}

// staged is the pipeline plan of a run of measured layers, and where its devices are: the node of each
// rank.
func (w *World) staged(v plan.View, id plan.RunID, by int32) (p pipeline.Plan, nodes []plan.NodeID) {
	job := v.Run(id).Job
	if by == plan.None || v.ProfileOf(job).Stages == 0 || v.Pipeline(by).JSON == nil || json.Unmarshal(v.Pipeline(by).JSON, &p) != nil {
		return p, nil
	}
	// A rank's workers are neighbours, and its first one stands for its copies.
	each, i := max(1, max(1, v.Shape(job).Devices)*v.Run(id).Workers/int32(max(1, len(p.Orders)))), int32(0)
	v.GrantsOf(id, func(g plan.Grant) {
		if i++; (i-1)%each == 0 && len(nodes) < len(p.Orders) {
			nodes = append(nodes, g.Node)
		}
	})
	if len(nodes) < len(p.Orders) {
		return p, nil
	}
	return p, nodes
}

// stagesOf yields the layers of each stage of a plan and the ranks that hold it.
func stagesOf(p *pipeline.Plan, layers int, yield func(first, end int32, ranks []int32)) {
	routes := p.Schedule().Routes
	for s := range routes[0] {
		first, end := int32(0), int32(layers)
		if s > 0 {
			first = p.Cuts[s-1]
		}
		if s < len(p.Cuts) {
			end = p.Cuts[s]
		}
		var ranks []int32
		for _, route := range routes {
			ranks = append(ranks, route[s])
		}
		yield(first, end, ranks)
	}
}

// Stages are how long a microbatch truly takes in each stage of a run's plan; nothing where it has no
// plan of measured layers.
func (w *World) Stages(v plan.View, id plan.RunID) (all []unit.Duration) {
	p, nodes := w.staged(v, id, v.Run(id).Terms.Plan.ID)
	if nodes == nil {
		return nil
	}
	layers, paces := w.drifted(v, v.Run(id).Job), w.paces(v, id, len(p.Orders))
	if paces == nil {
		return nil
	}
	stagesOf(&p, len(layers), func(first, end int32, ranks []int32) {
		took, slowest := unit.Duration(0), math.Inf(1)
		for _, l := range layers[first:end] {
			took += l.Forward + l.Backward
		}
		for _, r := range ranks {
			slowest = min(slowest, paces[r])
		}
		all = append(all, unit.Duration(math.Round(float64(took)/slowest)))
	})
	return all
}

// moments is what a device keeps of each weight for its optimiser, as a multiple of it: two moments.
const moments = 2

// Migration is how long a run stands still that goes on by another plan: each rank is sent the layers
// that it did not hold, with the state of their optimiser, by one that held them, each sending and
// receiving over its part of its node's link.
func (w *World) Migration(v plan.View, id plan.RunID, from, to int32) (longest unit.Duration) {
	before, nodes := w.staged(v, id, from)
	after, _ := w.staged(v, id, to)
	if nodes == nil || len(before.Orders) != len(after.Orders) {
		return 0
	}
	layers := w.Layers(v, v.Run(id).Job)
	held := make([][]int32, len(layers))
	stagesOf(&before, len(layers), func(first, end int32, ranks []int32) {
		for l := first; l < end; l++ {
			held[l] = ranks
		}
	})
	ranksOn := map[plan.NodeID]float64{}
	for _, n := range nodes {
		ranksOn[n]++
	}
	sent := make([]unit.Duration, 2*len(nodes)) // by rank: out, and in
	stagesOf(&after, len(layers), func(first, end int32, ranks []int32) {
		for l := first; l < end; l++ {
			for _, rank := range ranks {
				source := held[l][0]
				if slices.Contains(held[l], rank) || nodes[source] == nodes[rank] {
					continue // inside a node it is copied in no time to speak of
				}
				kib := float64(layers[l].ParamKiB) * (1 + moments)
				for i, at := range [2]int32{source, rank} {
					if up := w.c.Nodes[nodes[at]].Uplink; up > 0 {
						sent[2*at+int32(i)] += unit.Seconds(kib * 1024 * 8 / (float64(up) * 1e6 / ranksOn[nodes[at]]))
					}
				}
			}
		}
	})
	for _, d := range sent {
		longest = max(longest, d)
	}
	return longest
}
