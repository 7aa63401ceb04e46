package world

import (
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
}

// bubbles are those of one run, as a host or as a guest: device microseconds, and how many come
// to them now in each.
type bubbles struct{ paces, sums [4]float64 }

func (b *bubbles) passes(span float64) {
	for i, pace := range b.paces {
		b.sums[i] += pace * span
	}
}

// add counts what a run had up to when it was booked.
func (b *Bubbles) add(run *bubbles) {
	for i, sec := range []*float64{&b.HostSec, &b.IdleSec, &b.FilledSec, &b.SlowedSec} {
		*sec += run.sums[i] / float64(unit.Second)
	}
}

// filling is what a run that keeps so many devices busy adds to bubbles from now on.
func (w *World) filling(x *run, pace float64) (paces [4]float64) {
	switch {
	case x.paused || x.solo <= 0 || !x.live:
	case x.guest && x.law != "":
		for _, d := range x.devices {
			for _, r := range w.onDev[d] {
				if y := &w.runs[r]; !y.guest && !y.paused && y.spare.IdleMicro > 0 {
					paces[2] += pace / float64(x.count)
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
