package world

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Slow is a device that takes so many times as long as others of its model for whatever it computes, or a
// link that takes so many times as long for whatever crosses it, from one instant until another. It is
// nobody's job: whoever comes there is slow, and whoever leaves is not.
type Slow struct {
	From, Until unit.Time     // Until 0 is for ever
	Device      plan.DeviceID // None where it is a link
	Link        int32
	Times       float64 // above 0; of several at the same time the product counts
}

// slowness is how many times as long devices take at this moment, those that do not take as
// long as they should.
type slowness struct {
	begun   []bool // by their place in Config.Slow
	devices map[plan.DeviceID]float64
}

// SetSlow begins or ends one of those that the world was made with, and returns the runs whose end has
// moved.
func (w *World) SetSlow(now unit.Time, v plan.View, which int, begins bool) (moved []plan.RunID) {
	if w.slow.begun == nil {
		w.slow = slowness{make([]bool, len(w.config.Slow)), map[plan.DeviceID]float64{}}
	}
	is, times := w.config.Slow[which], 1.
	w.slow.begun[which] = begins
	for i, begun := range w.slow.begun {
		if s := &w.config.Slow[i]; begun && s.Device == is.Device && (s.Device != plan.None || s.Link == is.Link) {
			times *= s.Times
		}
	}
	if is.Device == plan.None {
		w.net.SetSlow(is.Link, times)
		return w.onLink(now, is.Link)
	}
	w.slow.devices[is.Device] = times
	var on []plan.RunID
	v.GrantsOn(is.Device, func(g plan.Grant) {
		if w.alive(g.Run) && !slices.Contains(on, g.Run) {
			on = append(on, g.Run)
		}
	})
	for _, id := range on {
		moved = joined(moved, w.Regrant(now, v, id))
	}
	return moved
}

// SetLink takes a link down or brings it back, and returns the runs whose end moved.
func (w *World) SetLink(now unit.Time, id int32, down bool) []plan.RunID {
	w.net.SetDown(id, down)
	return w.onLink(now, id)
}

// onLink sees to those who send over a link that has changed.
func (w *World) onLink(now unit.Time, id int32) []plan.RunID {
	on := w.net.On(id)
	if len(on) == 0 {
		return nil
	}
	return slices.Clone(w.rerate(now, on[0]))
}

// pace is how fast a device is now, by its model and what has befallen it.
func (w *World) pace(g plan.Grant) float64 {
	speed := cmp.Or(w.c.Models[w.c.Nodes[g.Node].Model].Speed, 1)
	if g.Device == plan.None {
		return speed
	}
	return speed / cmp.Or(w.slow.devices[g.Device], 1)
}

// heldUp is how fast the slowest device of a run is now, against the slowest by its model.
func (w *World) heldUp(v plan.View, id plan.RunID) float64 {
	if w.slow.begun == nil {
		return 1
	}
	is, should := math.Inf(1), math.Inf(1)
	v.GrantsOf(id, func(g plan.Grant) {
		is, should = min(is, w.pace(g)), min(should, cmp.Or(w.c.Models[w.c.Nodes[g.Node].Model].Speed, 1))
	})
	if math.IsInf(should, 1) {
		return 1
	}
	return is / should
}

// paces are how fast the ranks of a plan are, each as its slowest worker: those that hold its slices wait for
// each other, and its copies before the step is over. A rank's workers are neighbours; where they are not as
// many on each nobody says.
func (w *World) paces(v plan.View, id plan.RunID, ranks int) []float64 {
	n, i := int(v.Run(id).Workers*max(1, v.Shape(v.Run(id).Job).Devices)), 0
	if ranks == 0 || n%ranks != 0 {
		return nil
	}
	all := slices.Repeat([]float64{math.Inf(1)}, ranks)
	v.GrantsOf(id, func(g plan.Grant) {
		rank := min(i*ranks/n, ranks-1)
		all[rank] = min(all[rank], w.pace(g))
		i++
	})
	if i != n {
		return nil
	}
	return all
}

// Slowness is how many times as long each worker of a run takes as devices of its model do: what a driver
// finds out that has each of them do the same known work.
func (w *World) Slowness(v plan.View, id plan.RunID) (all []float64) {
	each, i := int(max(1, v.Shape(v.Run(id).Job).Devices)), 0
	v.GrantsOf(id, func(g plan.Grant) {
		if i++; (i-1)%each == 0 {
			all = append(all, 1)
		}
		if last := len(all) - 1; g.Device != plan.None {
			all[last] = max(all[last], cmp.Or(w.slow.devices[g.Device], 1))
		}
	})
	return all
}

// LinkSlowness is how many times as long the link of each worker's node takes as it should, as Slowness is of
// devices; nothing where all are as they should be.
func (w *World) LinkSlowness(v plan.View, id plan.RunID) (all []float64) {
	each, i, slow := int(max(1, v.Shape(v.Run(id).Job).Devices)), 0, false
	v.GrantsOf(id, func(g plan.Grant) {
		if i++; (i-1)%each == 0 {
			all = append(all, w.net.Slowness(w.c.NodeLink(int32(g.Node))))
			slow = slow || all[len(all)-1] != 1
		}
	})
	if !slow {
		return nil
	}
	return all
}
