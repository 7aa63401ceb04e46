package local

import (
	"math"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
)

// paceOver is the least time over which steps are counted, news how many hundredths a rate
// must have changed to be told, and patience for how many steps' time a run must have made
// none to be said to stand.
const (
	paceOver = run.Standing
	news     = 5
	patience = 10
)

// pace is how fast a run goes, from the steps that its rank 0 reports.
type pace struct {
	step int64 // where the present count began, and when; zero is nowhere
	at   unit.Time
	told int64 // rate reported last, in millionths; 0 is none
	// For a run that may stand: its steps per second when it last made any, and that it was
	// said to.
	speed float64
	stood bool
}

// again begins to count anew: the run has started, rested or been given other terms.
func (p *pace) again() { *p = pace{} }

// seen takes in the step that was reported last. Once the count began long enough ago it
// returns the steps per second since, or for how long there was none.
func (p *pace) seen(step int64, at unit.Time) (speed float64, stands unit.Duration) {
	took := at.Sub(p.at)
	switch {
	case p.at == 0 || step < p.step || step > p.step && p.stood:
		p.step, p.at, p.stood = step, at, false
	case took < paceOver || p.stood:
	case step > p.step:
		p.speed = float64(step-p.step) / took.Seconds()
		p.step, p.at = step, at
		return p.speed, 0
	case p.speed > 0 && took.Seconds() >= patience/p.speed:
		return 0, took
	}
	return 0, 0
}

// rate is the rate of a run in millionths of its job's reference, or for how long it has
// stood, if that is news, else 0. The reference is the fastest that the job was seen to go
// with as many workers as it asked for: what it declared may be wrong, and nobody has
// measured it by itself.
func (a *attempt) rate(r *supervise.Record) (rate int64, stands unit.Duration) {
	speed, stands := a.pace.seen(r.Report.Step, r.At)
	if speed == 0 && stands == 0 {
		return 0, 0
	}
	d := a.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(a.order.Workers) == int(a.order.Spec.Gang) {
		d.fastest[a.order.Job] = max(d.fastest[a.order.Job], speed)
	}
	best := d.fastest[a.order.Job]
	if best == 0 {
		return 0, 0 // it was never seen with the workers it asked for
	}
	if stands > 0 {
		a.pace.stood, a.pace.told = true, 0
		return 0, stands
	}
	rate = int64(math.Round(speed / best * plan.FullRate))
	if off := rate - a.pace.told; a.pace.told > 0 && off*100 < news*a.pace.told && -off*100 < news*a.pace.told {
		return 0, 0
	}
	a.pace.told = rate
	return rate, 0
}
