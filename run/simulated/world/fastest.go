package world

import (
	"github.com/musterdl/muster/plan"
)

// Fastest is the rate of a job where it goes fastest, on the gang that it asks for and with
// nobody beside it.
func (w *World) Fastest(v plan.View, id plan.JobID) (fastest float64) {
	shape, t := v.Shape(id), &w.truth[id]
	for kind := range w.c.Models {
		model := &w.c.Models[kind]
		for nodes := 1; nodes <= min(int(shape.Gang), len(w.c.Nodes)); nodes++ {
			rate := 0.0
			if len(t.menu) > 0 {
				rate = w.straggle(id, float64(t.menu.Rate(w.c, int32(kind), shape.Gang, nodes > 1))/plan.FullRate)
			} else {
				rate = w.soloRate(id, shape, shape.Gang, spot{nodes: nodes, class: t.class, model: model.Name, speed: model.Speed})
			}
			fastest = max(fastest, rate)
			if nodes > 1 && (len(t.menu) > 0 || t.class == "") {
				break // more nodes make no difference, or only a slower run
			}
		}
	}
	return fastest
}

// Shared reports whether a run ever had less of a device than its job asks for.
func (w *World) Shared() bool { return w.shared }
