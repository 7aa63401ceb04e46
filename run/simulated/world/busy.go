package world

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// alone is how many devices a run would keep busy as fast as it goes now, if each were
// busy for it alone.
func (x *run) alone() float64 {
	if x.paused || x.solo <= 0 {
		return 0
	}
	return x.width * min(1, x.rate/x.solo)
}

// setPace notes how many devices a run keeps busy from now on. No device is more than
// busy: where those on it together would make it so, each is counted for its part.
func (w *World) setPace(now unit.Time, id plan.RunID) {
	x := &w.runs[id]
	pace := x.alone()
	if len(x.devices) > 0 && pace > 0 {
		left := float64(x.count)
		for _, d := range x.devices {
			all := 0.0
			for _, r := range w.onDev[d] {
				y := &w.runs[r]
				all += y.alone() / float64(y.count)
			}
			left += 1/max(1, all) - 1
		}
		pace *= left / float64(x.count)
	}
	x.book.Set(now, pace, w.filling(x, pace))
}

// BusySec is the device seconds, of one device model, that runs kept busy up to an
// instant since the world began. A run over several models counts for its slowest.
func (w *World) BusySec(now unit.Time, model int32) float64 {
	busy := w.busy[model]
	for i := range w.runs {
		if x := &w.runs[i]; x.live && x.model == model {
			busy += x.book.BusyUntil(now)
		}
	}
	return busy / float64(unit.Second)
}

// RunBusySec is the device seconds that a run that has not ended kept busy up to an
// instant since the world began.
func (w *World) RunBusySec(now unit.Time, id plan.RunID) float64 {
	if !w.alive(id) {
		return 0
	}
	return w.runs[id].book.BusyUntil(now) / float64(unit.Second)
}

// Rate is the progress of a run per second; 0 where it rests or has ended.
func (w *World) Rate(id plan.RunID) float64 {
	if !w.alive(id) || w.runs[id].paused {
		return 0
	}
	return w.runs[id].rate
}

// apply gives the runs of a component their rates and paces, and returns, in the
// component's place, those whose rate changed and one that is new.
func (w *World) apply(now unit.Time, component []plan.RunID, rates []float64, fresh plan.RunID) []plan.RunID {
	for i, r := range component {
		if y := &w.runs[r]; rates[i] != y.rate || r == fresh {
			y.advance(now)
			y.rate = rates[i]
		} else {
			rates[i] = same
		}
	}
	for _, r := range component {
		w.setPace(now, r)
	}
	i := -1
	return slices.DeleteFunc(component, func(plan.RunID) bool { i++; return rates[i] == same })
}

// same marks a rate that did not change.
const same = -1

// Left is the work that a job has left at an instant, of its true duration, where it has
// a run or none.
func (w *World) Left(now unit.Time, job plan.JobID, run plan.RunID) unit.Duration {
	left := w.truth[job].left
	if w.alive(run) {
		x := w.runs[run]
		x.advance(now)
		left -= x.done
	}
	return unit.Duration(max(0, left))
}
