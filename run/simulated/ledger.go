package simulated

import (
	"math/bits"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/report"
	"github.com/musterdl/muster/unit"
)

// ledger accounts for every thousandth of a device and every microsecond. What was
// occupied is integrated from the devices' side as it changes; what it was used for
// is added up from the runs' side as they end; the two must agree to the last unit.
type ledger struct {
	now      unit.Time
	capacity int64 // thousandths of a device there are
	occupied int64
	live     int // runs on the books

	capacityTime, occupiedTime amount // from the devices' side
	useful, lost, overhead     amount // from the runs' side
	over                       bool   // more was occupied than there is
}

// amount is a sum of products of thousandths and microseconds; a large cluster over
// a year does not fit 64 bits.
type amount struct{ hi, lo uint64 }

func (a *amount) add(milli int64, d unit.Duration) {
	hi, lo := bits.Mul64(uint64(milli), uint64(d))
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi, _ = bits.Add64(a.hi, hi, carry)
}

func (a amount) plus(b amount) amount {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return amount{hi, lo}
}

// deviceSec converts to device-seconds.
func (a amount) deviceSec() float64 { return (float64(a.hi)*(1<<64) + float64(a.lo)) / 1e9 }

// advance integrates up to an instant.
func (l *ledger) advance(at unit.Time) {
	l.capacityTime.add(l.capacity, at.Sub(l.now))
	l.occupiedTime.add(l.occupied, at.Sub(l.now))
	l.now = at
}

// occupy changes what is occupied from now on.
func (l *ledger) occupy(milli int64) { l.occupied += milli }

// settle writes the ledger into a result and says whether it balances.
func (l *ledger) settle(r *report.Result) {
	used := l.useful.plus(l.lost).plus(l.overhead)
	r.DeviceSec = l.capacityTime.deviceSec()
	r.UsefulDeviceSec, r.LostDeviceSec, r.OverheadDeviceSec = l.useful.deviceSec(), l.lost.deviceSec(), l.overhead.deviceSec()
	r.IdleDeviceSec = r.DeviceSec - l.occupiedTime.deviceSec()
	r.Balanced = used == l.occupiedTime && !l.over
}

// book adds what a run did with what it held.
func (l *ledger) book(milli int64, useful, lost, overhead unit.Duration) {
	l.useful.add(milli, useful)
	l.lost.add(milli, lost)
	l.overhead.add(milli, overhead)
}

// closeRuns books the runs that the end of the history finds alive.
func (s *Simulation) closeRuns(v plan.View) {
	for id := range s.runs {
		l := &s.runs[id]
		switch l.status {
		case plan.Running:
			l.useful = l.ran + s.ledger.now.Sub(l.since)
			s.span(s.ledger.now, l, plan.RunID(id), report.SpanRun)
		case plan.Suspended:
			l.useful = l.ran
		case plan.Starting, plan.Stopping:
			l.overhead += s.ledger.now.Sub(l.since)
		}
		if l.status != plan.Gone {
			s.ledger.book(l.milli, l.useful, l.lost, l.overhead)
		}
	}
}
