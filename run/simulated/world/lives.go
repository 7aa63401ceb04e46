package world

import (
	"encoding/json"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
)

// What lives on of a run that lost devices.

// Lose has the workers that are left of a run save when some are lost, before its end: nothing,
// unless each stage of its plan has a copy that lost none. They hold the last whole step; the step
// at work is lost, and as much time as the save takes, for which they keep their devices.
func (w *World) Lose(now unit.Time, v plan.View, id plan.RunID, lost func(plan.Grant) bool) {
	x, r := &w.runs[id], v.Run(id)
	if r.Terms.Plan.ID == plan.None || x.paused {
		return
	}
	pl := v.Pipeline(r.Terms.Plan.ID)
	var gone []bool // by device
	v.GrantsOf(id, func(g plan.Grant) { gone = append(gone, lost(g)) })
	copies := w.copies(v, id, &pl, len(gone))
	for stage := 0; len(copies) > 0 && stage < len(copies[0]); stage++ {
		if !slices.ContainsFunc(copies, func(stages [][]int32) bool {
			return !slices.ContainsFunc(stages[stage], func(d int32) bool { return gone[d] })
		}) {
			return
		}
	}
	if len(copies) > 1 {
		x.lives = now.Sub(x.began) - x.rested - pl.Iteration - v.Job(x.job).Checkpoint.Save
	}
}

// copies are the devices of each rank of each pipeline of a run's plan, by their place among those
// of the run; nothing where copies are not alike, or hold what no other does.
func (w *World) copies(v plan.View, id plan.RunID, pl *plan.Pipeline, devices int) (all [][][]int32) {
	if p, nodes := w.staged(v, id, v.Run(id).Terms.Plan.ID); nodes != nil {
		each := int(max(1, v.Shape(v.Run(id).Job).Devices))
		ranks := len(p.Orders)
		n := devices / each / ranks
		if p.Tensor > 1 || n*ranks*each != devices {
			return nil // slices are not put together again
		}
		for one := range n {
			stages := make([][]int32, ranks)
			for rank := range stages {
				for d := range each {
					stages[rank] = append(stages[rank], int32((rank*n+one)*each+d))
				}
			}
			all = append(all, stages)
		}
		return all
	}
	var s parallel.Shape
	if v.ProfileOf(v.Run(id).Job).Stages > 0 || json.Unmarshal(pl.JSON, &s) != nil || s.Experts > 1 || s.Ranks*s.Copies*s.Tensor != devices || s.Tensor > 1 && !w.config.Slices {
		return nil
	}
	for _, one := range s.Plan().Pipelines {
		stages := make([][]int32, len(one.Ranks))
		for rank := range one.Ranks {
			stages[rank] = one.Ranks[rank].Devices
		}
		all = append(all, stages)
	}
	return all
}
