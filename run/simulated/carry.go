package simulated

import (
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// carryOut does what a change says, as nature would.
func (s *Simulation) carryOut(at unit.Time, c *plan.Change) {
	switch c.Verb {
	case plan.Start:
		s.begin(at, c)
	case plan.Stop:
		s.stop(at, c.Run)
	case plan.Suspend:
		s.pause(at, c.Run)
		if d := s.swapping(c.Run); d > 0 {
			s.runs[c.Run].leaving = true
			s.queueUp(at.Add(d), entry{kind: runSuspended, run: c.Run, job: c.Job, version: s.runs[c.Run].version})
			return
		}
		s.suspended(at, c.Run)
	case plan.Resume:
		s.become(at, c.Run, plan.Running)
		s.emit(engine.Event{Kind: engine.Resumed, Job: c.Job, Attempt: c.Attempt})
		s.pay(at, c.Run, s.swapping(c.Run))
	case plan.Regrant:
		s.regrant(at, c.Run)
	case plan.Rent:
		s.queueUp(at.Add(s.config.Prices.Arrival), entry{kind: rentalComes, node: c.Node})
	case plan.Return:
		s.ledger.capacity -= s.healthy(c.Node) * 1000
		s.ledger.price -= int64(s.engine.View().Cluster().Nodes[c.Node].MilliPerHour)
	case plan.Reshape:
		s.queueUp(at.Add(s.cutting(c.Device, c.Shape)), entry{kind: deviceReshaped, device: c.Device, change: c.ID})
	}
}

// pause stops a run's work while it holds on to its devices: from now on they are lost to
// overhead.
func (s *Simulation) pause(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	s.leave(at, id)
	l.since, l.paying = at, true
	s.moved(at, s.world.Pause(at, id))
}

// pay stops a run's work for so long; what it pays for at the same time it pays for
// together.
func (s *Simulation) pay(at unit.Time, id plan.RunID, d unit.Duration) {
	l := &s.runs[id]
	if l.status != plan.Running {
		return
	}
	if l.paid = max(l.paid, at.Add(d)); l.paid == at {
		s.paid(at, id)
		return
	}
	s.pause(at, id)
	s.queueUp(l.paid, entry{kind: runPaid, run: id, job: l.job, version: l.version})
}

// paid lets a run go on that has paid.
func (s *Simulation) paid(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	if l.status != plan.Running || l.leaving || l.paid > at {
		return
	}
	s.leave(at, id)
	l.since, l.paying = at, false
	s.computes(id)
	s.moved(at, s.world.Unpause(at, id))
}

// suspended has a run that has moved what it had to rest from now on.
func (s *Simulation) suspended(at unit.Time, id plan.RunID) {
	s.become(at, id, plan.Suspended)
	s.emit(engine.Event{Kind: engine.Suspended, Job: s.runs[id].job, Attempt: s.runs[id].attempt})
}

// begin starts a run: it occupies its devices at once and computes when it has been
// set up and, after the first attempt, restored.
func (s *Simulation) begin(at unit.Time, c *plan.Change) {
	v := s.engine.View()
	for int(c.Run) >= len(s.runs) {
		s.runs = append(s.runs, live{status: plan.Gone})
	}
	milli := int64(0)
	v.GrantsOf(c.Run, func(g plan.Grant) { milli += int64(g.Reserve) })
	s.runs[c.Run] = live{job: c.Job, attempt: c.Attempt, status: plan.Starting, since: at, milli: milli,
		version: s.runs[c.Run].version + 1, ceiling: v.Run(c.Run).Terms.Share.Ceiling, plan: v.Run(c.Run).Terms.Plan.ID, host: plan.None}
	s.ledger.live++
	s.ledger.occupy(milli)
	s.queueUp(at.Add(s.delay(v, c.Run)), entry{kind: runStarts, run: c.Run, job: c.Job, version: s.runs[c.Run].version})
}

// delay is what starting a run takes, and measuring its job where it is the first.
func (s *Simulation) delay(v plan.View, id plan.RunID) unit.Duration {
	job := v.Run(id).Job
	if v.Job(job).Attempt > 1 {
		return s.setUp(v, id)
	}
	return s.setUp(v, id) + s.probing(v, job)
}

// regrant gives a run that goes on other terms. What it held until now is booked as
// what it did until now.
func (s *Simulation) regrant(at unit.Time, id plan.RunID) {
	l, v := &s.runs[id], s.engine.View()
	milli := int64(0)
	v.GrantsOf(id, func(g plan.Grant) { milli += int64(g.Reserve) })
	width := s.width(id)
	if milli != l.milli || width != l.width {
		s.leave(at, id)
		l.since = at
		if l.works() {
			s.computes(id)
		}
		l.pieces = append(l.pieces, piece{l.milli, l.ran - l.piecesRan, l.overhead})
		l.piecesRan, l.overhead = l.ran, 0
		if l.status != plan.Suspended {
			s.ledger.occupy(milli - l.milli)
		}
		l.milli = milli
	}
	if l.status.Steady() {
		s.moved(at, s.world.Regrant(at, v, id))
		if to := v.Run(id).Terms.Plan.ID; to != l.plan {
			from := l.plan
			l.plan = to
			s.pay(at, id, s.world.Migration(v, id, from, to)+s.config.Prices.Pause)
		}
		if !s.crowded(at, id) {
			s.meets(at, id)
		}
	}
}

// stop ends a run as told: one that can saves first.
func (s *Simulation) stop(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	l.version++
	e := entry{kind: runStopped, run: id, job: l.job, version: l.version}
	delay := unit.Duration(0)
	if l.status.Steady() {
		var saved bool
		delay, saved = s.saving(s.engine.View(), id)
		l.ending.Kept = s.halt(at, id, saved)
		l.ending.Unsaved = !saved && s.engine.View().Job(l.job).Checkpoint.Asked()
	}
	s.become(at, id, plan.Stopping)
	s.queueUp(at.Add(delay), e)
}

// halt ends a run's progress and returns the running time whose work is kept.
func (s *Simulation) halt(at unit.Time, id plan.RunID, saved bool) unit.Duration {
	l := &s.runs[id]
	e, moved := s.world.End(at, s.engine.View(), id, saved)
	// What was done before the books were opened is in none of them.
	ran := e.Ran - l.before
	l.busySec = e.BusySec
	s.spent[l.job] += ran
	l.useful = max(0, e.Kept-l.before)
	l.lost = ran - l.useful
	s.moved(at, moved)
	return e.Kept
}

// happen turns a queue entry that has come up into events.
func (s *Simulation) happen(at unit.Time, e entry) {
	switch e.kind {
	case nodeBreaks, nodeMends, deviceBreaks, deviceMends, linkBreaks, linkMends, slowBegins, slowEnds:
		s.breakOrMend(at, e)
		return
	case rentalComes:
		s.ledger.capacity += s.healthy(e.node) * 1000
		s.ledger.price += int64(s.engine.View().Cluster().Nodes[e.node].MilliPerHour)
		s.emit(engine.Event{Kind: engine.NodeUp, Node: e.node})
		return
	case answered:
		s.emit(s.answers[e.change])
		s.answers[e.change] = engine.Event{}
		return
	case deviceReshaped:
		s.emit(engine.Event{Kind: engine.Reshaped, Device: e.device, Change: e.change})
		return
	}
	l := &s.runs[e.run]
	if l.version != e.version {
		return // overtaken
	}
	switch e.kind {
	case runSuspended:
		s.suspended(at, e.run)
	case runPaid:
		if l.paying {
			s.paid(at, e.run)
		}
	case runStarts:
		s.become(at, e.run, plan.Running)
		s.emit(engine.Event{Kind: engine.Started, Job: l.job, Attempt: l.attempt})
		l.doneAt = at
		s.moved(at, s.world.Begin(at, s.engine.View(), e.run))
		if s.crowded(at, e.run) {
			return
		}
		s.meets(at, e.run)
		s.observeLater(at, e.run)
		if limit := s.engine.View().Job(l.job).TimeLimit; limit > 0 {
			s.queueUp(at.Add(limit), entry{kind: runOverLimit, run: e.run, job: l.job, version: l.version})
		}
	case runStopped:
		s.gone(at, e.run)
		s.emit(engine.Event{Kind: engine.Stopped, Job: l.job, Attempt: l.attempt, Ending: l.ending})
	case runFinishes:
		if s.due(at, e) {
			s.exit(at, e.run, plan.NoFailure)
		}
	case runFails:
		if s.due(at, e) {
			s.fault(at, e.run)
		}
	case runOverLimit:
		s.exit(at, e.run, plan.TimeFailure)
	case lawSettles:
		if l.settles == at {
			s.moved(at, s.world.Settle(at, e.run, false))
		}
	case runStands:
		s.tellStanding(at, e.run)
	case runObserved:
		s.observe(at, e.run)
	case runDrifts:
		if l.works() && s.world.Drifts(e.run) <= at {
			s.moved(at, s.world.Drift(at, s.engine.View(), e.run))
		}
	}
}

// due reports whether an end that was scheduled for now still is: the rate may have
// changed since.
func (s *Simulation) due(at unit.Time, e entry) bool {
	end, fails := s.world.Ends(e.run)
	return s.runs[e.run].status == plan.Running && end <= at && fails == (e.kind == runFails)
}

// exit ends a run by itself.
func (s *Simulation) exit(at unit.Time, id plan.RunID, class plan.FailureClass) {
	s.exits(at, id, engine.Ending{Class: class})
}

// exits ends a run of which some processes may live on.
func (s *Simulation) exits(at unit.Time, id plan.RunID, end engine.Ending) {
	l := &s.runs[id]
	l.version++
	if l.status.Steady() {
		end.Kept = s.halt(at, id, end.Class == plan.NoFailure)
	}
	s.gone(at, id)
	s.emit(engine.Event{Kind: engine.Exited, Job: l.job, Attempt: l.attempt, Ending: end})
}

// moved schedules anew the ends of runs whose rate changed.
func (s *Simulation) moved(at unit.Time, runs []plan.RunID) {
	for _, id := range runs {
		if s.config.ObserveEvery > 0 {
			s.rerated(at, id)
		}
		s.stands(at, id)
		if s.runs[id].status != plan.Running {
			continue
		}
		end, fails := s.world.Ends(id)
		if end == unit.Never {
			continue
		}
		kind := runFinishes
		if fails {
			kind = runFails
		}
		if drifts := s.world.Drifts(id); drifts < end {
			s.queueUp(max(drifts, at), entry{kind: runDrifts, run: id, job: s.runs[id].job, version: s.runs[id].version})
		}
		s.tellRate(id)
		s.queueUp(max(end, at), entry{kind: kind, run: id, job: s.runs[id].job, version: s.runs[id].version})
	}
}

// become moves a run to another status and books the one it leaves.
func (s *Simulation) become(at unit.Time, id plan.RunID, status plan.RunStatus) {
	l := &s.runs[id]
	s.leave(at, id)
	switch {
	case status == plan.Suspended:
		s.ledger.occupy(-l.milli)
	case l.status == plan.Suspended && status == plan.Stopping:
		l.idle = true
	case l.status == plan.Suspended:
		s.ledger.occupy(l.milli)
	}
	l.status, l.since, l.paying, l.leaving = status, at, false, false
	if status == plan.Running {
		s.computes(id)
	}
}

// leave books the status that a run is in up to now.
func (s *Simulation) leave(at unit.Time, id plan.RunID) {
	switch l := &s.runs[id]; {
	case l.status == plan.Starting, l.status == plan.Stopping, l.paying:
		if !l.idle {
			l.overhead += at.Sub(l.since)
		}
		s.span(at, l, id, report.SpanOverhead)
	case l.works():
		l.couldSec, l.heldSec = l.could(at), l.held(at)
		s.ledger.busy.could -= l.width
		l.ran += at.Sub(l.since)
		s.span(at, l, id, report.SpanRun)
	}
}

// gone takes a run off the books.
func (s *Simulation) gone(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	s.bookBusy(at, id)
	s.leave(at, id)
	if l.status != plan.Suspended && !l.idle {
		s.ledger.occupy(-l.milli)
	}
	s.ledger.book(l)
	s.ledger.live--
	l.status = plan.Gone
}

// span tells a stretch of a run to those who draw it, one bar per row of devices.
func (s *Simulation) span(at unit.Time, l *live, id plan.RunID, kind report.SpanKind) {
	if at <= l.since || s.config.Span == nil && !s.config.Collector.Draws() {
		return
	}
	v := s.engine.View()
	tell := func(bar report.Span) {
		s.config.Collector.Span(bar)
		if s.config.Span != nil {
			s.config.Span(bar)
		}
	}
	bar := report.Span{Job: v.Name(l.job), From: l.since, To: at, Kind: kind, Reason: v.Job(l.job).Reason.Words(v)}
	v.GrantsOf(id, func(g plan.Grant) {
		if g.Device == plan.None {
			return
		}
		if bar.Lanes > 0 && int32(g.Device) == bar.Lane+bar.Lanes {
			bar.Lanes++
			return
		}
		if bar.Lanes > 0 {
			tell(bar)
		}
		bar.Lane, bar.Lanes = int32(g.Device), 1
	})
	if bar.Lanes > 0 {
		tell(bar)
	}
}

// emit feeds an event within the same instant.
func (s *Simulation) emit(e engine.Event) { s.now = append(s.now, e) }
