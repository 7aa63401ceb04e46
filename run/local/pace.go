package local

import (
	"math"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/unit"
)

// paceOver is the least time over which steps are counted, and news how many hundredths a
// rate must have changed to be told.
const (
	paceOver = 10 * unit.Second
	news     = 5
)

// pace is how fast a run goes, from the steps that its rank 0 reports.
type pace struct {
	step int64 // where the present count began, and when; zero is nowhere
	at   unit.Time
	told int64 // rate reported last, in millionths; 0 is none
}

// again begins to count anew: the run has started, rested or been given other terms.
func (p *pace) again() { *p = pace{} }

// seen takes in a step that was reported, and returns the steps per second since the count
// began once that is long enough ago, else 0.
func (p *pace) seen(step int64, at unit.Time) float64 {
	if p.at == 0 || step < p.step {
		p.step, p.at = step, at
		return 0
	}
	took := at.Sub(p.at)
	if took < paceOver {
		return 0
	}
	speed := float64(step-p.step) / took.Seconds()
	p.step, p.at = step, at
	return speed
}

// rate is the rate of a run in millionths of its job's reference, if it is news, else 0.
// The reference is the fastest that the job was seen to go with as many workers as it
// asked for: what it declared may be wrong, and nobody has measured it by itself.
func (a *attempt) rate(r *supervise.Record) int64 {
	speed := a.pace.seen(r.Report.Step, r.At)
	if speed == 0 {
		return 0
	}
	d := a.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(a.order.Workers) == int(a.order.Spec.Gang) {
		d.fastest[a.order.Job] = max(d.fastest[a.order.Job], speed)
	}
	best := d.fastest[a.order.Job]
	if best == 0 {
		return 0 // it was never seen with the workers it asked for
	}
	rate := int64(math.Round(speed / best * plan.FullRate))
	if off := rate - a.pace.told; a.pace.told > 0 && off*100 < news*a.pace.told && -off*100 < news*a.pace.told {
		return 0
	}
	a.pace.told = rate
	return rate
}
