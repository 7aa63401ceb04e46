package world

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Bubbles are the device seconds of runs that go by a plan, up to an instant since the world
// began.
type Bubbles struct {
	// HostSec is what they held while they computed, IdleSec the part of it in which their devices
	// had to wait for a pass by themselves.
	HostSec, IdleSec float64
	// FilledSec is what guests computed in that part, SlowedSec by how much longer the runs held
	// their devices for what they did than by themselves.
	FilledSec, SlowedSec float64
	// OwnedSec is what owners held while guests were on their devices or slowed them, and LostSec the part
	// of it that they would not have had to hold without any.
	OwnedSec, LostSec float64
}

// bubbles are those of one run, as a host or as a guest: device microseconds, and how many come
// to them now in each.
type bubbles struct{ paces, sums [6]float64 }

func (b *bubbles) passes(span float64) {
	for i, pace := range b.paces {
		b.sums[i] += pace * span
	}
}

// add counts what a run had up to when it was booked.
func (b *Bubbles) add(run *bubbles) {
	for i, sec := range []*float64{&b.HostSec, &b.IdleSec, &b.FilledSec, &b.SlowedSec, &b.OwnedSec, &b.LostSec} {
		*sec += run.sums[i] / float64(unit.Second)
	}
}

// filling is what a run that keeps so many devices busy adds to bubbles from now on.
func (w *World) filling(x *run, pace float64) (paces [6]float64) {
	if n := float64(x.count); x.live && !x.guest && !x.paused && (x.lost > 0 || w.accompanied(x)) {
		paces[4], paces[5] = n, n*x.lost
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
					paces[2] += each
					break
				}
			}
		}
	case !x.spare.IsZero():
		n := float64(x.count)
		paces[0], paces[1], paces[3] = n, n*x.spare.Idle(), n*max(0, 1-x.rate/x.solo)
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
func (w *World) Bubbles(now unit.Time) Bubbles {
	all := w.ended
	for i := range w.runs {
		if x := &w.runs[i]; x.live {
			b := x.bubbles
			b.passes(float64(now.Sub(x.booked)))
			all.add(&b)
		}
	}
	return all
}

// Idle is the part of its devices' time in which a run, which may have ended, had to wait for a
// pass by itself.
func (w *World) Idle(id plan.RunID) float64 { return w.runs[id].spare.Idle() }
