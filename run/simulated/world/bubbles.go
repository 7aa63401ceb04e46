package world

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/world/books"
)

// filling is what a run that keeps so many devices busy adds to bubbles from now on.
func (w *World) filling(x *run, pace float64) (paces books.Paces) {
	if n := float64(x.count); x.live && !x.guest && !x.paused && (x.lost > 0 || w.accompanied(x)) {
		paces.Owned, paces.Lost = n, n*x.lost
	}
	switch {
	case x.paused || x.solo <= 0 || !x.live:
	case x.guest && x.law != "":
		for _, d := range x.devices {
			for _, r := range w.onDev[d] {
				if y := &w.runs[r]; !y.guest && !y.paused && y.spare.IdleMicro > 0 {
					each := pace / float64(x.count)
					if !y.offered {
						each = min(each, y.spare.Idle()) // the rest is while its host waits for links
					}
					paces.Filled += each
					break
				}
			}
		}
	case !x.spare.IsZero():
		n := float64(x.count)
		paces.Host, paces.Idle, paces.Slowed = n, n*x.spare.Idle(), n*max(0, 1-x.rate/x.solo)
	}
	return paces
}

// accompanied reports whether a guest computes on a device of a run.
func (w *World) accompanied(x *run) bool {
	return slices.ContainsFunc(x.devices, func(d plan.DeviceID) bool {
		return slices.ContainsFunc(w.onDev[d], func(r plan.RunID) bool { return w.runs[r].guest && !w.runs[r].paused })
	})
}

// Bubbles are those of all runs.
func (w *World) Bubbles(now unit.Time) books.Bubbles {
	all := w.ended
	for i := range w.runs {
		if x := &w.runs[i]; x.live {
			all.Add(x.book.Until(now))
		}
	}
	return all
}

// Idle is the part of its devices' time in which a run, which may have ended, had to wait for a
// pass by itself.
func (w *World) Idle(id plan.RunID) float64 { return w.runs[id].spare.Idle() }
