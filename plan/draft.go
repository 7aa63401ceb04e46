package plan

import (
	"slices"

	"github.com/musterdl/muster/unit"
)

// Draft is the one way to change a State: an edit that can be tried, looked at,
// rolled back to a mark, and in the end committed. It cannot over-commit: an edit
// that would is not made and says why.
type Draft struct {
	View
	changes []Change
	notes   []Note
	asides  []Aside
	start   Mark
}

// Mark is a point of a draft to roll back to.
type Mark struct{ undo, changes, notes, asides, plans int }

// Aside is an edit that no driver carries out but that belongs to the state: an
// estimate, a memo, a reason, a lease, a pipeline plan. It is journaled with the
// commit, so that a journal can be folded without asking a strategy.
type Aside struct {
	After int        `json:"after,omitempty"` // how many of the draft's changes it follows
	Kind  string     `json:"kind"`            // estimate, memo, why, lease or plan
	Job   JobID      `json:"job"`             // or the run, of a lease
	A     int64      `json:"a,omitempty"`
	B     int64      `json:"b,omitempty"`
	Code  ReasonCode `json:"code,omitempty"`
	Plan  *Pipeline  `json:"plan,omitempty"`
}

// Slot asks for workers on one node. With Device None and whole devices the lowest
// free ones are taken; a share names its device. Reserve, when not zero, takes
// that many thousandths of each device instead of what the job asked for: that is
// how two jobs that want a whole device share one.
type Slot struct {
	Node    NodeID
	Device  DeviceID
	Workers int32
	Reserve int32
}

// Edit opens a draft on s. There is one at a time; Commit or Discard ends it. Its
// memory, that of the changes it yields included, is used again by the next.
func (s *State) Edit() *Draft {
	if s.log != nil {
		panic("plan: a draft is already open")
	}
	if s.draft == nil {
		s.draft, s.undone = &Draft{View: View{s}}, &undo{}
	}
	s.log = s.undone
	s.log.reset()
	d := s.draft
	d.changes, d.notes, d.asides = d.changes[:0], d.notes[:0], d.asides[:0]
	d.start = d.Mark()
	return d
}

// Mark remembers this point of the draft.
func (d *Draft) Mark() Mark {
	return Mark{len(d.s.log.kinds), len(d.changes), len(d.notes), len(d.asides), len(d.s.Plans)}
}

// Rollback undoes every edit since the mark.
func (d *Draft) Rollback(m Mark) {
	d.s.rollback(m.undo)
	d.s.NextChange -= int64(len(d.changes) - m.changes)
	d.changes = d.changes[:m.changes]
	d.notes = d.notes[:m.notes]
	d.asides = d.asides[:m.asides]
	d.s.Plans = d.s.Plans[:m.plans]
}

// Discard undoes the whole draft and closes it.
func (d *Draft) Discard() {
	d.Rollback(d.start)
	d.s.log = nil
}

// Commit closes the draft and returns its changes and the notes about them.
func (d *Draft) Commit() ([]Change, []Note) {
	d.s.log = nil
	return d.changes, d.notes
}

// Changes is what the draft would commit so far.
func (d *Draft) Changes() []Change { return d.changes }

// Note adds a line to the dossier of the last change.
func (d *Draft) Note(step Step, chosen, rejected, won, lost int64) {
	if n := len(d.changes); n > 0 {
		d.notes = append(d.notes, Note{d.changes[n-1].ID, step, chosen, rejected, won, lost})
	}
}

// Start promises a run of job on the slots. It returns the run, or None and why it
// cannot be. The start waits for the runs and reshapes whose room it takes.
func (d *Draft) Start(job JobID, slots []Slot, terms Terms, reason Reason) (RunID, Reason) {
	s := d.s
	j := &s.Jobs[job]
	if j.Phase != Waiting || j.Run != None {
		return None, j.Reason
	}
	m := d.Mark()
	run := s.newRun()
	after := d.lastAfter()
	if j.Leaving != None {
		after = append(after, s.Runs[j.Leaving].Change)
	}
	workers := int32(0)
	tail := int32(None)
	for _, slot := range slots {
		var ok bool
		if tail, ok = s.take(run, tail, slot, &s.Shapes[j.Shape], terms.Turn); !ok {
			d.Rollback(m)
			return None, Reason{NoRoom, s.Shapes[j.Shape].Milli(s.Shapes[j.Shape].Gang), s.room.FreeMilli(s.Shapes[j.Shape].Models)}
		}
		workers += slot.Workers
	}
	after = s.blockers(run, after)
	j = s.touchJob(job)
	j.Attempt++
	j.Run = run
	j.Waited += s.Now.Sub(j.Since)
	j.Phase, j.Since, j.Reason = Active, s.Now, reason
	r := &s.Runs[run]
	r.Job, r.Attempt, r.Workers, r.Since, r.Terms = job, j.Attempt, workers, s.Now, terms
	d.emit(Change{Job: job, Attempt: j.Attempt, Run: run, Device: None, Verb: Start, After: after, Terms: terms, Reason: reason})
	r.Change = d.changes[len(d.changes)-1].ID
	return run, Reason{}
}

// Stop ends a run and puts its job back in the queue; a promise that was not
// carried out yet is withdrawn instead. It reports whether there was one to end.
func (d *Draft) Stop(run RunID, reason Reason, price unit.Duration) bool {
	s := d.s
	r := s.Runs[run]
	if r.Status == Stopping || r.Status == Gone {
		return false
	}
	j := s.touchJob(r.Job)
	j.Phase, j.Since, j.Reason, j.Run = Waiting, s.Now, reason, None
	if r.Status == Promised {
		s.drop(r.Change)
		d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Withdraw, Reason: reason})
		s.release(run)
		return true
	}
	j.Leaving = run
	if reason.Code == MadeWayFor || reason.Code == RoundPlan || reason.Code == SliceOver || reason.Code == LeaseOver {
		j.Preemptions++
	}
	s.leave(run)
	d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Stop, Price: price, Reason: reason})
	s.Runs[run].Change = d.changes[len(d.changes)-1].ID
	return true
}

// Suspend keeps a running run resident without computing.
func (d *Draft) Suspend(run RunID, reason Reason) bool {
	s := d.s
	if s.Runs[run].Status != Running {
		return false
	}
	r := s.touchRun(run)
	must("run", runTable[:], r.Status, Suspended)
	r.Status, r.Since = Suspended, s.Now
	d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Suspend, Reason: reason})
	r.Change = d.changes[len(d.changes)-1].ID
	return true
}

// Resume lets a suspended run compute again once those that take turns with it
// and are being suspended have confirmed.
func (d *Draft) Resume(run RunID, reason Reason) bool {
	s := d.s
	if s.Runs[run].Status != Suspended || s.Runs[run].Change != 0 {
		return false
	}
	after := d.lastAfter()
	for g := s.Runs[run].First; g != None; g = s.Grants[g].OfRun {
		if s.Grants[g].Device == None {
			continue
		}
		for o := s.Devices[s.Grants[g].Device].First; o != None; o = s.Grants[o].OnDevice {
			other := &s.Runs[s.Grants[o].Run]
			if s.Grants[o].Run != run && s.Grants[o].Turn == s.Grants[g].Turn && other.Change != 0 && !slices.Contains(after, other.Change) {
				after = append(after, other.Change)
			}
		}
	}
	r := s.touchRun(run)
	d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Resume, After: after, Reason: reason})
	r.Change = d.changes[len(d.changes)-1].ID
	return true
}

// Regrant gives a run that goes on new terms.
func (d *Draft) Regrant(run RunID, terms Terms, reason Reason) bool {
	s := d.s
	r := s.Runs[run]
	if r.Status > Suspended || r.Terms == terms {
		return false
	}
	s.touchRun(run).Terms = terms
	d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Regrant, Terms: terms, Reason: reason})
	return true
}

// Lease sets the instant at which the active strategy means to end the run.
func (d *Draft) Lease(run RunID, until unit.Time) {
	d.s.touchRun(run).Until = until
	d.aside(Aside{Kind: "lease", Job: JobID(run), A: int64(until)})
}

// Reshape cuts a device another way. Every run on it must be stopping already;
// the reshape waits for them, and later starts on it wait for the reshape.
func (d *Draft) Reshape(device DeviceID, geometry int16, reason Reason) bool {
	s := d.s
	model := &s.Cluster.Models[s.Nodes[s.Devices[device].Node].Model]
	if int(geometry) >= max(1, len(model.Geometries)) || s.Devices[device].Status != Steady || s.Devices[device].Geometry == geometry {
		return false
	}
	after := d.lastAfter()
	for g := s.Devices[device].First; g != None; g = s.Grants[g].OnDevice {
		if !s.Grants[g].freed {
			return false
		}
		if c := s.Runs[s.Grants[g].Run].Change; !slices.Contains(after, c) {
			after = append(after, c)
		}
	}
	dev := s.touchDevice(device)
	must("device", deviceTable[:], dev.Status, Reshaping)
	dev.Status, dev.Geometry, dev.Generation = Reshaping, geometry, dev.Generation+1
	d.emit(Change{Job: None, Run: None, Device: device, Verb: Reshape, Shape: geometry, After: after, Reason: reason})
	dev.Change = d.changes[len(d.changes)-1].ID
	return true
}

// Refuse declines a job that has never started, with the reason its owner reads.
func (d *Draft) Refuse(job JobID, reason Reason) bool {
	s := d.s
	if j := &s.Jobs[job]; j.Phase != Waiting || j.Attempt != 0 {
		return false
	}
	j := s.touchJob(job)
	must("job", phaseTable[:], j.Phase, Refused)
	j.Phase, j.Since, j.Ended, j.Reason = Refused, s.Now, s.Now, reason
	d.emit(Change{Job: job, Run: None, Device: None, Verb: Refuse, Reason: reason})
	return true
}

// Explain records why a job still waits; it is not a change.
func (d *Draft) Explain(job JobID, reason Reason) {
	if d.s.Jobs[job].Reason != reason {
		d.s.touchJob(job).Reason = reason
		d.aside(Aside{Kind: "why", Job: job, Code: reason.Code, A: reason.A, B: reason.B})
	}
}

// Memo sets the two words the active Order keeps for a job.
func (d *Draft) Memo(job JobID, memo [2]int64) {
	d.s.touchJob(job).Memo = memo
	d.aside(Aside{Kind: "memo", Job: job, A: memo[0], B: memo[1]})
}

// Estimate records step 1's estimate of a job's running time on Gang workers.
func (d *Draft) Estimate(job JobID, run unit.Duration) {
	if d.s.Jobs[job].Estimate != run {
		d.s.touchJob(job).Estimate = run
		d.aside(Aside{Kind: "estimate", Job: job, A: int64(run)})
	}
}

// AddPlan stores a pipeline plan and returns its id for Terms.Plan.
func (d *Draft) AddPlan(p Pipeline) int32 {
	d.s.Plans = append(d.s.Plans, p)
	d.aside(Aside{Kind: "plan", Plan: &p})
	return int32(len(d.s.Plans) - 1)
}

func (d *Draft) aside(a Aside) {
	a.After = len(d.changes)
	d.asides = append(d.asides, a)
}

// Asides are the edits beside the changes so far; valid until the next draft.
func (d *Draft) Asides() []Aside { return d.asides }

func (d *Draft) emit(c Change) {
	c.ID = d.s.NextChange
	d.s.NextChange++
	if len(c.After) > 0 {
		d.s.pend(Pending{Change: c, Left: c.After})
	}
	d.changes = append(d.changes, c)
}

// lastAfter returns an empty list for the ids a change waits for.
func (d *Draft) lastAfter() []int64 { return nil }
