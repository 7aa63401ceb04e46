package simulated

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/world"
)

// resume goes on from a State. Everything that a driver would know and a State does
// not say is taken up from it: a run that is starting has been since it was told to,
// one that computes has done what its running time says, one that stops has saved
// since it was told to. What should have happened by now happens now.
func (s *Simulation) resume() error {
	from := s.config.From
	at := max(s.config.At, from.Now)
	s.engine = engine.Restore(from, s.config.Scheduler, s.config.Policy)
	s.world = world.New(from.Cluster, s.config.World)
	s.ledger.now, s.ledger.busy.from, s.ledger.before = at, at, charged(s.engine.View(), at)
	s.schedulingBreaks(at)
	s.schedulingSlow(at)
	s.openBooks()
	s.resumeJobs()
	s.late = s.resumeRuns(at)
	s.resumeDevices(at)
	if err := s.read(); err != nil {
		return err
	}
	for _, e := range s.config.First {
		s.feed(at, e)
	}
	// Without anything new the engine, which looks at all jobs anew, decides nothing;
	// then it hears of what the driver was about to confirm.
	return s.settle(at)
}

// openBooks counts what there is: the books begin here.
func (s *Simulation) openBooks() {
	v := s.engine.View()
	for n := range plan.NodeID(v.Nodes()) {
		if st := v.Node(n).Status; !s.down[n] && st != plan.Away && st != plan.Coming {
			s.ledger.price += int64(v.Cluster().Nodes[n].MilliPerHour)
			s.ledger.capacity += s.healthy(n) * 1000
		}
	}
}

// resumeJobs takes over the jobs there are.
func (s *Simulation) resumeJobs() {
	v := s.engine.View()
	n := v.Jobs()
	s.submitted = int64(n)
	s.spent, s.wait = make([]unit.Duration, n), make([]bool, n)
	s.world.Expect(n, v.RunSlots())
	for id := range plan.JobID(n) {
		j := v.Job(id)
		s.spent[id] = j.Executed
		if over(v, id) {
			s.before++
			continue
		}
		if s.wait[id] = j.Phase.Waits(); s.wait[id] {
			s.waiting++
		}
		s.world.Know(id, v.Class(j.Class), s.config.Known(v, id))
	}
	s.ended = s.before
	if n > 0 && over(v, plan.JobID(n-1)) {
		s.world.Know(plan.JobID(n-1), "", world.Known{}) // all jobs up to here have their place
	}
}

// resumeRuns takes over the runs there are, and returns the events that the driver
// was about to report.
func (s *Simulation) resumeRuns(at unit.Time) []engine.Event {
	v := s.engine.View()
	s.runs = make([]live, v.RunSlots())
	var computing []plan.RunID
	var midway []world.Midway
	var late []plan.RunID
	for i := range s.runs {
		id, r := plan.RunID(i), v.Run(plan.RunID(i))
		s.runs[i].status = plan.Gone
		if r.Status == plan.Gone || r.Status == plan.Promised {
			continue
		}
		l := &s.runs[i]
		*l = live{job: r.Job, attempt: r.Attempt, status: r.Status, since: at, version: 1, ceiling: r.Terms.Share.Ceiling, plan: r.Terms.Plan.ID, host: r.Terms.Share.Guest}
		v.GrantsOf(id, func(g plan.Grant) { l.milli += int64(g.Reserve) })
		s.ledger.live++
		switch r.Status {
		case plan.Starting:
			s.queueUp(max(at, r.Since.Add(s.delay(v, id))), entry{kind: runStarts, run: id, job: r.Job, version: 1})
		case plan.Stopping:
			l.idle = !r.Charged
			s.resumeStop(at, id, r)
		default:
			if r.Status != plan.Running && r.Change != 0 && !s.pending(r.Change) {
				late = append(late, id)
			}
			m := s.midway(at, r)
			if l.status = plan.Running; m.Paused {
				l.status = plan.Suspended
			} else {
				s.computes(id)
			}
			l.before = m.Since.Sub(m.Began) - m.Rested
			s.spent[r.Job] += l.before
			computing, midway = append(computing, id), append(midway, m)
			if limit := v.Job(r.Job).TimeLimit; limit > 0 {
				s.queueUp(max(at, r.Began.Add(limit)), entry{kind: runOverLimit, run: id, job: r.Job, version: 1})
			}
		}
		if l.status != plan.Suspended && !l.idle {
			s.ledger.occupy(l.milli)
		}
	}
	s.world.Resume(v, computing, midway)
	s.resumeReports(at, computing)
	s.moved(at, computing)
	return s.confirmations(late)
}

// midway says how far a run has come at an instant.
func (s *Simulation) midway(at unit.Time, r plan.Run) world.Midway {
	m := world.Midway{Began: r.Began, Since: at, Rested: r.Paused}
	switch {
	case r.Status == plan.Running:
	case r.Status == plan.Resuming && !s.pending(r.Change): // it was told to go on, and does
		m.Rested += at.Sub(r.Since)
	default:
		m.Since, m.Paused = r.Since, true
	}
	return m
}

// pending reports whether a change has not gone to the driver yet.
func (s *Simulation) pending(change int64) bool {
	return slices.ContainsFunc(s.config.From.Pending, func(p plan.Pending) bool { return p.Change.ID == change && !p.Gone })
}

// resumeStop takes over a run that was told to stop.
func (s *Simulation) resumeStop(at unit.Time, id plan.RunID, r plan.Run) {
	due := r.Since
	if r.Began != unit.Never {
		m := world.Midway{Began: r.Began, Since: r.Since, Rested: r.Paused}
		takes, saved := s.saving(s.engine.View(), id)
		e := s.world.Stopped(s.engine.View(), id, m, saved)
		s.runs[id].ending = engine.Ending{Kept: e.Kept, Unsaved: !saved && s.engine.View().Job(r.Job).Checkpoint.Asked()}
		s.spent[r.Job] += e.Ran
		due = due.Add(takes)
	}
	s.queueUp(max(at, due), entry{kind: runStopped, run: id, job: r.Job, version: 1})
}

// confirmations are what the driver reports at once of runs that were told to suspend
// or to go on.
func (s *Simulation) confirmations(late []plan.RunID) (events []engine.Event) {
	slices.SortFunc(late, func(a, b plan.RunID) int { return cmp.Compare(s.runs[a].job, s.runs[b].job) })
	v := s.engine.View()
	for _, id := range late {
		kind := engine.Suspended
		if v.Run(id).Status == plan.Resuming {
			kind = engine.Resumed
		}
		events = append(events, engine.Event{Kind: kind, Job: s.runs[id].job, Attempt: s.runs[id].attempt})
	}
	return events
}

// resumeDevices goes on cutting the devices that are being cut. When that began is not
// known: it takes its whole time from now on.
func (s *Simulation) resumeDevices(at unit.Time) {
	v := s.engine.View()
	s.cut = make([]int16, v.Devices())
	for id := range plan.DeviceID(v.Devices()) {
		d := v.Device(id)
		if d.Status != plan.Reshaping {
			s.cut[id] = d.Geometry
		}
		if d.Status == plan.Reshaping && !s.pending(d.Change) {
			s.queueUp(at.Add(s.cutting(id, d.Geometry)), entry{kind: deviceReshaped, device: id, change: d.Change})
		}
	}
}

// later feeds what was known beforehand to happen by now.
func (s *Simulation) later(at unit.Time) {
	for len(s.config.Later) > 0 && s.config.Later[0].At <= at {
		s.feed(at, s.config.Later[0].Event)
		s.config.Later = s.config.Later[1:]
	}
}

// feed lets an event happen that is no doing of the jobs: what is lost takes its runs
// along. A job that has ended is not put back in the queue: nothing is known of it.
func (s *Simulation) feed(at unit.Time, e engine.Event) {
	v := s.engine.View()
	switch e.Kind {
	case engine.NodeDown, engine.NodeUp:
		if e.Node < 0 || int(e.Node) >= v.Nodes() || s.down[e.Node] == (e.Kind == engine.NodeDown) {
			return
		}
	case engine.DeviceDown, engine.DeviceUp:
		if e.Device < 0 || int(e.Device) >= v.Devices() || s.broken[e.Device] == (e.Kind == engine.DeviceDown) {
			return
		}
	case engine.Requeue:
		cancelled := func(o engine.Event) bool { return o.Kind == engine.Cancel && o.Job == e.Job }
		if e.Job < 0 || int(e.Job) >= v.Jobs() || v.Job(e.Job).Phase.Over() || slices.ContainsFunc(s.now, cancelled) {
			return
		}
	}
	switch e.Kind {
	case engine.NodeDown:
		s.loseNode(at, e.Node)
	case engine.NodeUp:
		s.mendNode(e.Node)
	case engine.DeviceDown:
		s.loseDevice(at, e.Device)
	case engine.DeviceUp:
		s.mendDevice(e.Device)
	default:
		s.emit(e)
	}
}
