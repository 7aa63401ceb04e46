package world

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
)

// What lives on of a run that lost devices.

// Lose has the workers that are left of a run save when some are lost, before its end, and reports whether they
// hold all that is kept among them: not unless each stage of its plan has a copy that lost none. They
// hold the last whole step; the step at work is lost, and as much time as the save takes, for which they keep their devices.
func (w *World) Lose(now unit.Time, v plan.View, id plan.RunID, lost func(plan.Grant) bool) bool {
	x, r := &w.runs[id], v.Run(id)
	if r.Terms.Plan.ID == plan.None || x.paused {
		return false
	}
	var gone []bool // by device
	v.GrantsOf(id, func(g plan.Grant) { gone = append(gone, lost(g)) })
	h := w.held(v, id, len(gone))
	if len(h.Copies) < 2 || !h.Whole(gone) {
		return false
	}
	x.lives = now.Sub(x.began) - x.rested - v.Pipeline(r.Terms.Plan.ID).Iteration - v.Job(x.job).Checkpoint.Save
	t, pieces, i := &w.truth[x.job], h.Pieces(), 0
	t.alive = map[plan.DeviceID]string{}
	v.GrantsOf(id, func(g plan.Grant) {
		if i++; !gone[i-1] {
			t.alive[g.Device] = pieces[i-1]
		}
	})
	slices.Sort(pieces)
	t.pieces = len(slices.Compact(pieces))
	return true
}

// held is what the devices of a run hold by its plan.
func (w *World) held(v plan.View, id plan.RunID, devices int) parallel.Held {
	r := v.Run(id)
	if r.Terms.Plan.ID == plan.None {
		return parallel.Held{}
	}
	return parallel.HeldBy(v.Pipeline(r.Terms.Plan.ID).JSON, v.ProfileOf(r.Job).Stages > 0, devices, int(max(1, v.Shape(r.Job).Devices)), w.config.Slices)
}

// Keeps is how long a run that keeps processes of the one before it stands still until each has been sent what it does not hold
// and its plan puts there, and whether they hold all of it among them. Whoever waited is waited for no more.
func (w *World) Keeps(v plan.View, id plan.RunID) (copies unit.Duration, all bool) {
	r := v.Run(id)
	t := &w.truth[r.Job]
	alive := t.alive
	t.alive = nil
	var on []plan.DeviceID
	have := map[string]bool{}
	v.GrantsOf(id, func(g plan.Grant) {
		on = append(on, g.Device)
		if piece := alive[g.Device]; piece != "" {
			have[piece] = true
		}
	})
	h := w.held(v, id, len(on))
	pieces := h.Pieces()
	needs := func(place int) bool { return place >= len(pieces) || pieces[place] != alive[on[place]] }
	for place := range on {
		if !needs(place) {
			continue
		}
		if len(have) < t.pieces {
			return 0, false // what was held by others who have left has to be read
		}
		copies = v.Filling(v.Pipeline(r.Terms.Plan.ID).Spare, on, needs, func(link int32) float64 { return w.net.Capacity(link) })
		return copies, copies < unit.Forever
	}
	return 0, len(on) > 0
}
