package simulated

import (
	"fmt"
	"math"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// busyBooks hold what the world says was busy against what could have been: by run, and
// by day over all of them. What could have been comes from the grants and from the times
// that this driver reported, not from the world.
type busyBooks struct {
	could    int64           // millionths of a device, of the runs that compute now
	couldDay unit.DeviceTime // thousandths of that, since the day began
	capacity unit.DeviceTime // up to when the day began
	from     unit.Time       // when the day began
	busySec  float64         // up to then
	idleSec  float64         // in which plans left devices idle, of runs that ended
}

// width is how much of its devices, in millionths of one, a run could keep busy: what it
// was granted, of a guest what its job asks for, times the true duty of the job.
func (s *Simulation) width(id plan.RunID) int64 {
	v := s.engine.View()
	job, milli := s.runs[id].job, int64(0)
	share := v.Shape(job).Share
	v.GrantsOf(id, func(g plan.Grant) {
		if g.Device != plan.None {
			milli += int64(max(g.Reserve, share))
		}
	})
	duty := s.world.Known(job).Busy
	if duty == 0 {
		duty = 1
	}
	return int64(math.Ceil(float64(1000*milli) * duty))
}

// computes notes that a run computes from now on.
func (s *Simulation) computes(id plan.RunID) {
	s.runs[id].width = s.width(id)
	s.ledger.busy.could += s.runs[id].width
}

// could is what a run could have kept busy by an instant, in device seconds.
func (l *live) could(at unit.Time) float64 {
	sec := l.couldSec
	if l.works() {
		sec += float64(l.width) / 1e6 * at.Sub(l.since).Seconds()
	}
	return sec
}

// held is what a run held of its devices while it worked, up to an instant, in device seconds.
func (l *live) held(at unit.Time) float64 {
	sec := l.heldSec
	if l.works() {
		sec += float64(l.milli) / 1000 * at.Sub(l.since).Seconds()
	}
	return sec
}

// bookBusy checks a run that is taken off the books, or that their end finds alive.
func (s *Simulation) bookBusy(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	busy, could := l.busySec+s.world.RunBusySec(at, id), l.could(at)
	if could > 0 { // the world knows the run
		s.ledger.busy.idleSec += l.held(at) * s.world.Idle(id)
	}
	if moreThan(busy, could) && s.ledger.over == "" {
		s.ledger.over = fmt.Sprintf("at %s: run %d of job %s is booked as busy for %.6f device seconds and could not have been for more than %.6f",
			unit.Duration(at), l.attempt, s.engine.View().Name(l.job), busy, could)
	}
}

// endDays checks the days that have ended by an instant; between the last of them and
// those before it nothing happened.
func (s *Simulation) endDays(at unit.Time) {
	if days := at.Sub(s.ledger.busy.from) / unit.Day; days > 0 {
		s.endDay(s.ledger.busy.from.Add(days * unit.Day))
	}
}

// endDay checks the day up to an instant at which nothing has happened yet, and returns
// what was busy up to it, in device seconds.
func (s *Simulation) endDay(at unit.Time) (sec float64) {
	s.ledger.advance(at)
	for model := range int32(len(s.engine.View().Cluster().Models)) {
		sec += s.world.BusySec(at, model)
	}
	l, b := &s.ledger, &s.ledger.busy
	most := min(b.couldDay.Hours()*3.6, l.capacityTime.Minus(b.capacity).Hours()*3600)
	if moreThan(sec-b.busySec, most) && l.over == "" {
		l.over = fmt.Sprintf("from %s to %s %.6f device seconds are booked as busy and no more than %.6f could have been",
			unit.Duration(b.from), unit.Duration(at), sec-b.busySec, most)
	}
	b.from, b.busySec, b.couldDay, b.capacity = at, sec, unit.DeviceTime{}, l.capacityTime
	return sec
}

// fillBubbles writes what became of the idle times of plans. What guests did in them must have
// had room in what the grants and the times reported here say.
func (s *Simulation) fillBubbles(r *report.Result) {
	b, l := s.world.Bubbles(s.ledger.now), &s.ledger
	if moreThan(b.FilledSec, l.busy.idleSec) && l.over == "" {
		l.over = fmt.Sprintf("guests are booked as busy for %.6f device seconds in what plans left idle, and that was no more than %.6f", b.FilledSec, l.busy.idleSec)
	}
	r.PlannedDeviceSec, r.BubbleDeviceSec, r.FilledDeviceSec, r.SlowedDeviceSec = b.HostSec, b.IdleSec, b.FilledSec, b.SlowedSec
	r.OwnedDeviceSec, r.LostToGuestsDeviceSec = b.OwnedSec, b.LostSec
}

// moreThan leaves sums of many rounded terms their rounding.
func moreThan(a, b float64) bool { return a > b*(1+1e-9)+1e-3 }
