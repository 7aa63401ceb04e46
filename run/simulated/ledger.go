package simulated

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// ledger accounts for every thousandth of a device and every microsecond. What was
// occupied is integrated from the devices' side as it changes; what it was used for
// is added up from the runs' side as they end; the two must agree to the last unit.
type ledger struct {
	now      unit.Time
	capacity int64 // thousandths of a device there are
	occupied int64
	live     int // runs on the books

	capacityTime, occupiedTime unit.DeviceTime // from the devices' side
	useful, lost, overhead     unit.DeviceTime // from the runs' side
	before                     unit.DeviceTime // what the accounts said when the books were opened
	over                       string          // what was more than it can be
	price                      int64           // thousandths of money per hour
	cost                       float64         // money
	busy                       busyBooks
}

// advance integrates up to an instant.
func (l *ledger) advance(at unit.Time) {
	l.capacityTime = l.capacityTime.Plus(unit.Use(l.capacity, at.Sub(l.now)))
	l.occupiedTime = l.occupiedTime.Plus(unit.Use(l.occupied, at.Sub(l.now)))
	l.busy.couldDay = l.busy.couldDay.Plus(unit.Use(l.busy.could, at.Sub(l.now)))
	if l.occupied > l.capacity && at > l.now && l.over == "" {
		l.over = fmt.Sprintf("at %s more is occupied than there is: %d of %d thousandths of a device", unit.Duration(at), l.occupied, l.capacity)
	}
	l.cost += float64(l.price) / 1000 * at.Sub(l.now).Seconds() / 3600
	l.now = at
}

// occupy changes what is occupied from now on.
func (l *ledger) occupy(milli int64) { l.occupied += milli }

// charged is what all accounts of the engine say was used up to an instant since which
// nothing has happened.
func charged(v plan.View, at unit.Time) (all unit.DeviceTime) {
	for id := range v.Accounts() {
		a := v.Account(id)
		all = all.Plus(a.Used).Plus(unit.Use(a.Held, at.Sub(v.Now())))
	}
	return all
}

// balance writes the ledger into a result and says whether it balances: the devices'
// side, the runs' side and the engine's accounts of tenants and users must agree.
func (l *ledger) balance(r *report.Result, accounts unit.DeviceTime) {
	used := l.useful.Plus(l.lost).Plus(l.overhead)
	r.DeviceSec = l.capacityTime.Hours() * 3600
	r.UsefulDeviceSec, r.LostDeviceSec, r.OverheadDeviceSec = l.useful.Hours()*3600, l.lost.Hours()*3600, l.overhead.Hours()*3600
	r.IdleDeviceSec = r.DeviceSec - l.occupiedTime.Hours()*3600
	r.Balanced = used == l.occupiedTime && l.before.Plus(l.occupiedTime) == accounts && l.over == ""
	if l.over != "" {
		r.Notes = append(r.Notes, l.over)
	}
}

// piece is a stretch of a run in which it held so much, and what it did in it.
type piece struct {
	milli         int64
	ran, overhead unit.Duration
}

// book adds what a run did with what it held. What it kept of its work is what it did
// first.
func (l *ledger) book(r *live) {
	useful, ran := r.useful, r.useful+r.lost
	for _, p := range append(r.pieces, piece{r.milli, ran - r.piecesRan, r.overhead}) {
		kept := min(useful, p.ran)
		useful -= kept
		l.useful = l.useful.Plus(unit.Use(p.milli, kept))
		l.lost = l.lost.Plus(unit.Use(p.milli, p.ran-kept))
		l.overhead = l.overhead.Plus(unit.Use(p.milli, p.overhead))
	}
}

// closeRuns books the runs that the end of the history finds alive.
func (s *Simulation) closeRuns(v plan.View) {
	for id := range s.runs {
		l := &s.runs[id]
		if l.status != plan.Gone {
			s.bookBusy(s.ledger.now, plan.RunID(id))
			s.leave(s.ledger.now, plan.RunID(id))
			if l.status != plan.Stopping {
				l.useful = l.ran
			}
			s.ledger.book(l)
		}
	}
}
