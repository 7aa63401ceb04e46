package plan

import (
	"bytes"
	"slices"

	"github.com/musterdl/muster/model/unit"
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
	held    []heldBack
	turns   int64
}

// Mark is a point of a draft to roll back to.
type Mark struct {
	undo, changes, notes, asides, plans int
	memory                              []byte
	claims                              []Claim
	reactions                           []Reaction
}

// Aside is an edit that no driver carries out but that belongs to the state: an
// estimate, a memo, a reason, a lease, a pipeline plan. It is journaled with the
// commit, so that a journal can be folded without asking a strategy.
type Aside struct {
	After int        `json:"after,omitempty"` // how many of the draft's changes it follows
	Kind  string     `json:"kind"`            // estimate, menu, memo, why, lease, plan, memory, claims or reaction
	Job   JobID      `json:"job"`             // or the run, of a lease
	A     int64      `json:"a,omitempty"`
	B     int64      `json:"b,omitempty"`
	Code  ReasonCode `json:"code,omitempty"`
	Plan  *Pipeline  `json:"plan,omitempty"`
	// Memory is all that the strategy remembers beside the state.
	Memory []byte `json:"memory,omitempty"`
	// Menu is another one of the job.
	Menu Menu `json:"menu,omitempty"`
	// Claims are all places in the calendar.
	Claims []Claim `json:"claims,omitempty"`
	// Reaction is the last of the job.
	Reaction *Reaction `json:"reaction,omitempty"`
}

// Slot asks for workers on one node. On names every device they get, in order;
// without it Device is the one that all of them share, and with None the lowest
// wholly free ones are taken. Reserve, when not zero, takes that many thousandths of
// each device instead of what the job asked for: that is how two jobs that want a
// whole device share one.
type Slot struct {
	Node    NodeID
	Device  DeviceID
	Workers int32
	Reserve int32
	On      []DeviceID
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
	d.changes, d.notes, d.asides, d.held = d.changes[:0], d.notes[:0], d.asides[:0], d.held[:0]
	d.start = d.Mark()
	return d
}

// Mark remembers this point of the draft.
func (d *Draft) Mark() Mark {
	return Mark{len(d.s.log.kinds), len(d.changes), len(d.notes), len(d.asides), len(d.s.Plans), d.s.Memory, d.s.Claims, d.s.Reactions}
}

// Rollback undoes every edit since the mark.
func (d *Draft) Rollback(m Mark) {
	if len(d.changes) > m.changes {
		d.turns++
	}
	d.s.rollback(m.undo)
	d.s.NextChange -= int64(len(d.changes) - m.changes)
	d.changes = d.changes[:m.changes]
	d.notes = d.notes[:m.notes]
	d.asides = d.asides[:m.asides]
	d.s.Plans, d.s.Memory, d.s.Claims, d.s.Reactions = d.s.Plans[:m.plans], m.memory, m.claims, m.reactions
}

// Discard undoes the whole draft and closes it.
func (d *Draft) Discard() {
	d.Rollback(d.start)
	d.s.log = nil
}

// Commit closes the draft and returns its changes and the notes about them.
func (d *Draft) Commit() ([]Change, []Note) {
	if len(d.held) > 0 {
		panic("plan: a draft is committed while room is held back")
	}
	d.s.log = nil
	return d.changes, d.notes
}

// Turns counts the changes made and taken back so far: while it stays the same, so do
// the runs.
func (d *Draft) Turns() int64 { return d.turns }

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
	if !s.isJob(job) {
		return None, Reason{Code: Impossible}
	}
	j, shape := &s.Jobs[job], &s.Shapes[s.Jobs[job].Shape]
	if j.Phase != Waiting || j.Run != None {
		return None, j.Reason
	}
	workers := int32(0)
	for i := range slots {
		if n := slots[i].Workers; n <= 0 || n > shape.Most()-workers {
			return None, Reason{Impossible, int64(n), 0}
		}
		workers += slots[i].Workers
	}
	if !shape.MayHave(workers) || crowded(slots, shape) || terms.Share.Milli < 0 || terms.Share.Milli > 1000 {
		return None, Reason{Impossible, int64(workers), 0}
	}
	if terms == (Terms{}) {
		terms = DefaultTerms() // the zero value would name plan 0 and guest 0
	}
	m := d.Mark()
	run := s.newRun()
	s.Runs[run].Job, s.Runs[run].Terms = job, terms
	tail := int32(None)
	for i := range slots {
		var ok bool
		if tail, ok = s.grantSlot(run, tail, slots[i], shape, &terms.Share); !ok {
			d.Rollback(m)
			return None, Reason{NoRoom, shape.Milli(workers), s.room.FreeMilli(shape.Models)}
		}
	}
	if !d.makeRoom(run, job) {
		d.Rollback(m)
		return None, Reason{NoRoom, shape.Milli(workers), s.room.FreeMilli(shape.Models)}
	}
	var after []int64
	if j = &s.Jobs[job]; j.Leaving != None {
		after = append(after, s.Runs[j.Leaving].Change)
	}
	after = s.blockers(run, after)
	j = s.touchJob(job)
	j.Attempt++
	j.Run, j.Admitted = run, true
	j.Waited += s.Now.Sub(j.Since)
	j.Phase, j.Since, j.Reason = Active, s.Now, reason
	r := s.touchRun(run)
	r.Job, r.Attempt, r.Workers, r.Since = job, j.Attempt, workers, s.Now
	s.believe(run)
	tries(s, run, slots)
	r.Start = d.s.NextChange
	r.Change = d.emit(Change{Job: job, Attempt: j.Attempt, Run: run, Device: None, Verb: Start, After: after, Terms: terms, Reason: reason})
	return run, Reason{}
}

// makeRoom stops the guests whose memory a new run of a job needs, the last to come first,
// and reports whether that is enough; a guest itself takes what is there.
func (d *Draft) makeRoom(run RunID, job JobID) bool {
	s := d.s
	for i := s.Runs[run].First; i != None; i = s.Grants[i].OfRun {
		device := s.Grants[i].Device
		for device != None && !s.holdsAll(device, promised) {
			guest := RunID(None)
			for o := s.Devices[device].First; o != None && guest == None && s.Runs[run].Terms.Share.Guest == None; o = s.Grants[o].OnDevice {
				if g := &s.Grants[o]; g.Run != run && !g.freed && s.guest(g) {
					guest = g.Run
				}
			}
			if guest == None || !d.Stop(guest, Reason{MadeWayFor, int64(job), 0}, 0) {
				return false
			}
		}
	}
	return true
}

// Stop ends a run and puts its job back in the queue; a promise that was not
// carried out yet is withdrawn instead. It reports whether there was one to end: a
// promise made in this very draft is not, it is rolled back.
func (d *Draft) Stop(run RunID, reason Reason, price unit.Duration) bool {
	s := d.s
	if !s.isRun(run) || s.Runs[run].Status == Stopping {
		return false
	}
	if s.Runs[run].Status == Promised && len(d.changes) > 0 && s.Runs[run].Change >= d.changes[0].ID {
		return false
	}
	r := s.Runs[run]
	j := s.touchJob(r.Job)
	j.Phase, j.Since, j.Reason, j.Run = Waiting, s.Now, reason, None
	s.drop(r.Change) // a start or a resume that still waits
	if r.Status == Promised {
		j.Waited += s.promised(run)
		d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Withdraw, Reason: reason})
		s.release(run)
		return true
	}
	j.Leaving = run
	if reason.Code == MadeWayFor || reason.Code == Reclaimed || reason.Code == Outranked || reason.Code == RoundPlan || reason.Code == SliceOver || reason.Code == LeaseOver || reason.Code == Defragmented {
		j.Preemptions++
	}
	s.leave(run)
	stop := d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Stop, Price: price, Reason: reason})
	s.supersede(r.Change, stop) // who waited for it to be suspended waits for it to be gone
	s.Runs[run].Change = stop
	return true
}

// Suspend keeps a running run resident without computing.
func (d *Draft) Suspend(run RunID, reason Reason) bool {
	s := d.s
	if !s.isRun(run) || s.Runs[run].Status != Running {
		return false
	}
	r := s.touchRun(run)
	must("run", runTable[:], r.Status, Suspended)
	r.Status, r.Since = Suspended, s.Now
	r.Change = d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Suspend, Reason: reason})
	return true
}

// Resume lets a suspended run compute again once those that take turns with it and
// are on their way out have confirmed. It is not made while another of its turn
// computes, or while its own suspension is not confirmed.
func (d *Draft) Resume(run RunID, reason Reason) bool {
	s := d.s
	if !s.isRun(run) || s.Runs[run].Status != Suspended || s.Runs[run].Change != 0 {
		return false
	}
	var after []int64
	for i := s.Runs[run].First; i != None; i = s.Grants[i].OfRun {
		if s.Grants[i].Device == None || s.Grants[i].Turn == 0 {
			continue
		}
		if !s.turnFree(i, anyChange) {
			return false
		}
		for o := s.Devices[s.Grants[i].Device].First; o != None; o = s.Grants[o].OnDevice {
			other := &s.Runs[s.Grants[o].Run]
			if s.Grants[o].Turn == s.Grants[i].Turn && other.Change != 0 && !slices.Contains(after, other.Change) {
				after = append(after, other.Change)
			}
		}
	}
	r := s.touchRun(run)
	must("run", runTable[:], r.Status, Resuming)
	r.Paused += s.Now.Sub(r.Since)
	r.Status, r.Since = Resuming, s.Now
	r.Change = d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Resume, After: after, Reason: reason})
	return true
}

// Regrant gives a run that goes on new terms, what it holds of its devices included. It
// takes effect at once, so it is made only if what the run then holds fits beside
// all that is on its devices at this moment.
func (d *Draft) Regrant(run RunID, terms Terms, reason Reason) bool {
	s := d.s
	if !s.isRun(run) || terms.Share.Milli < 0 || terms.Share.Milli > 1000 {
		return false
	}
	r := s.Runs[run]
	if r.Status == Promised || r.Status == Stopping || r.Terms == terms {
		return false
	}
	m := d.Mark()
	s.touchRun(run).Terms = terms
	if charged := r.Charged; charged { // for less or more from now on
		s.charge(run, false)
		defer s.charge(run, true)
	}
	if !terms.Share.sameGrants(r.Terms.Share) && !s.resettle(run) {
		d.Rollback(m)
		return false
	}
	d.emit(Change{Job: r.Job, Attempt: r.Attempt, Run: run, Device: None, Verb: Regrant, Terms: terms, Reason: reason})
	return true
}

// Lease sets the instant at which the active strategy means to end the run.
func (d *Draft) Lease(run RunID, until unit.Time) {
	if d.s.isRun(run) && d.s.Runs[run].Until != until {
		d.s.touchRun(run).Until = until
		d.aside(Aside{Kind: "lease", Job: JobID(run), A: int64(until)})
	}
}

// Reshape cuts a device another way. A run on it must be stopping already, then the
// reshape waits for it, or have a part that the new geometry has in the same place.
// Later starts on the device wait for the reshape.
func (d *Draft) Reshape(device DeviceID, geometry int16, reason Reason) bool {
	s := d.s
	if device < 0 || int(device) >= len(s.Devices) || s.Nodes[s.Devices[device].Node].Status == Down {
		return false
	}
	model := &s.Cluster.Models[s.Nodes[s.Devices[device].Node].Model]
	if geometry < 0 || int(geometry) >= len(model.Geometries) || s.Devices[device].Status != Steady || s.Devices[device].Geometry == geometry {
		return false
	}
	var after []int64
	was, will := s.partsOf(&s.Devices[device]), model.Geometries[geometry].Parts
	for g := s.Devices[device].First; g != None; g = s.Grants[g].OnDevice {
		if !s.Grants[g].freed {
			part := s.Grants[g].Part
			if part == 0 || !slices.Contains(will, was[part-1]) {
				return false
			}
			continue
		}
		if c := s.Runs[s.Grants[g].Run].Change; !slices.Contains(after, c) {
			after = append(after, c)
		}
	}
	node := s.Devices[device].Node
	s.touchNode(node)
	dev := s.touchDevice(device)
	must("device", deviceTable[:], dev.Status, Reshaping)
	whole := dev.Whole()
	dev.Status, dev.Geometry, dev.Generation = Reshaping, geometry, dev.Generation+1
	for g := dev.First; g != None; g = s.Grants[g].OnDevice {
		if !s.Grants[g].freed {
			grant := s.touchGrant(g)
			grant.Part = int16(slices.Index(will, was[grant.Part-1]) + 1)
		}
	}
	s.countWhole(dev, whole)
	s.room.recount(s, node)
	dev.Change = d.emit(Change{Job: None, Run: None, Device: device, Verb: Reshape, Shape: geometry, After: after, Reason: reason})
	return true
}

// Refuse declines a job in the first decision that sees it, with the reason its
// owner reads. One that was admitted stays so, whatever strategy decides later.
func (d *Draft) Refuse(job JobID, reason Reason) bool {
	s := d.s
	if !s.isJob(job) || s.Jobs[job].Phase != Waiting || s.Jobs[job].Admitted {
		return false
	}
	j := s.touchJob(job)
	must("job", phaseTable[:], j.Phase, Refused)
	j.Phase, j.Since, j.Ended, j.Reason = Refused, s.Now, s.Now, reason
	d.emit(Change{Job: job, Run: None, Device: None, Verb: Refuse, Reason: reason})
	return true
}

// Shed ends a job for good although work is left, since its goal is reached or near
// enough. A run of it is stopped first; the job has finished once that is gone. It
// reports whether there was one to end: a promise made in this very draft is not.
func (d *Draft) Shed(job JobID) bool {
	s, shed := d.s, Reason{Code: Shed}
	if !s.isJob(job) || s.Jobs[job].Phase != Waiting && s.Jobs[job].Phase != Active {
		return false
	}
	if run := s.Jobs[job].Run; run != None && !d.Stop(run, shed, 0) {
		return false
	}
	j := s.touchJob(job)
	must("job", phaseTable[:], j.Phase, Finished)
	j.Waited += s.Now.Sub(j.Since)
	j.Phase, j.Since, j.Ended, j.Reason, j.Admitted = Finished, s.Now, s.Now, shed, true
	d.emit(Change{Job: job, Run: None, Device: None, Verb: Finish, Reason: shed})
	return true
}

// Explain records why a job still waits; it is not a change. Of one that does not
// wait nothing is recorded.
func (d *Draft) Explain(job JobID, reason Reason) {
	if d.s.isJob(job) && d.s.Jobs[job].Phase.Waits() && d.s.Jobs[job].Reason != reason {
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

// PlanID is the id of a pipeline plan for Terms.Plan.ID. However many runs go by a plan, it is
// stored, and journaled, once.
func (d *Draft) PlanID(p Pipeline) int32 {
	if id := slices.IndexFunc(d.s.Plans, p.equals); id >= 0 {
		return int32(id)
	}
	return d.AddPlan(p)
}

// AddPlan stores a pipeline plan and returns its id.
func (d *Draft) AddPlan(p Pipeline) int32 {
	d.s.Plans = append(d.s.Plans, p)
	d.aside(Aside{Kind: "plan", Plan: &p})
	return int32(len(d.s.Plans) - 1)
}

// Remember keeps what the strategy remembers beside the state. The engine calls it
// at the end of a decision, with an encoding that it does not look into.
func (d *Draft) Remember(memory []byte) {
	if !bytes.Equal(d.s.Memory, memory) {
		d.s.Memory = bytes.Clone(memory) // a new one: copies of the state share the old
		d.aside(Aside{Kind: "memory", Memory: d.s.Memory})
	}
}

func (d *Draft) aside(a Aside) {
	a.After = len(d.changes)
	d.asides = append(d.asides, a)
}

// Asides are the edits beside the changes so far; valid until the next draft.
func (d *Draft) Asides() []Aside { return d.asides }

func (d *Draft) emit(c Change) int64 {
	c.ID = d.s.NextChange
	d.s.NextChange++
	d.turns++
	if len(c.After) > 0 {
		d.s.pend(Pending{Change: c, Left: c.After})
	}
	d.changes = append(d.changes, c)
	return c.ID
}

func (s *State) isJob(id JobID) bool { return id >= 0 && int(id) < len(s.Jobs) }

// isRun reports whether a slot holds a live run.
func (s *State) isRun(id RunID) bool {
	return id >= 0 && int(id) < len(s.Runs) && s.Runs[id].Status != Gone
}
