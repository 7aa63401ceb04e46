package plan

import (
	"math/bits"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// What happens to a State from outside: the engine calls these when events arrive.
// They are facts, not choices, and are never rolled back.

// Expect makes room for so many jobs more.
func (s *State) Expect(jobs int) {
	s.Jobs, s.Names = slices.Grow(s.Jobs, jobs), slices.Grow(s.Names, jobs)
}

// Admit appends a job as it is asked for, which comes after what before says, and returns
// its id.
func (s *State) Admit(name string, asked Asked, before ...Dependency) JobID {
	asked.Submit, asked.Account = s.Now, s.AccountsOf(asked.Tenant, asked.User)
	at := Standing{Phase: Waiting, Since: s.Now, Started: unit.Never, Ended: unit.Never, Run: None, Leaving: None, Reason: Reason{Code: New}}
	id := JobID(len(s.Jobs))
	if at.Blockers = int32(len(before)); len(before) > 0 {
		at.Phase, at.Reason = Blocked, Reason{Code: WaitsForJob, A: int64(before[0].Before)}
	}
	for _, b := range before {
		b.After = id
		s.Links = append(s.Links, b)
	}
	s.Jobs = append(s.Jobs, Job{Asked: asked, Standing: at})
	s.Names = append(s.Names, name)
	return id
}

// SetPhase moves a job to another phase, keeping its accounts of waiting.
func (s *State) SetPhase(id JobID, phase Phase, reason Reason) {
	j := &s.Jobs[id]
	must("job", phaseTable[:], j.Phase, phase)
	if j.Phase.Waits() {
		j.Waited += s.Now.Sub(j.Since)
	}
	if phase.Over() {
		j.Ended = s.Now
	} else if j.Phase.Over() {
		j.Ended = unit.Never
	}
	j.Phase, j.Since, j.Reason = phase, s.Now, reason
}

// Confirm notes that a change was carried out, or never will be, and returns the
// changes that waited for it alone, in order of their ids.
func (s *State) Confirm(change int64) (ready []Change) {
	if change == 0 || len(s.Pending) == 0 {
		return nil
	}
	w := &s.waiters
	if w.of == nil || len(s.Pending) > w.most {
		s.index()
	}
	list := w.of[change]
	delete(w.of, change)
	slices.Sort(list)
	for _, at := range list {
		p := &s.Pending[at]
		if p.Gone {
			continue
		}
		if p.Left = slices.DeleteFunc(slices.Clone(p.Left), func(c int64) bool { return c == change }); len(p.Left) == 0 {
			ready = append(ready, p.Change)
			p.Gone = true
		}
	}
	return ready
}

// StillPending are the changes that wait for others, without those that do no more; a copy.
func (s *State) StillPending() []Pending {
	return slices.DeleteFunc(slices.Clone(s.Pending), func(p Pending) bool { return p.Gone })
}

// waiters are where changes stand among the pending ones, by what they wait for; nil is not known. They hold
// for so many pending changes at most.
type waiters struct {
	of   map[int64][]int32
	most int
}

// index forgets changes that wait no more and notes which others wait for which, until there are twice as many.
func (s *State) index() {
	s.Pending = s.StillPending()
	s.waiters = waiters{map[int64][]int32{}, 2*len(s.Pending) + 16}
	for at := range s.Pending {
		s.waitsFor(int32(at))
	}
}

// waitsFor adds a pending change to the index, if there is one.
func (s *State) waitsFor(at int32) {
	if of := s.waiters.of; of != nil {
		for _, change := range s.Pending[at].Left {
			of[change] = append(of[change], at)
		}
	}
}

// waitsNoMore takes it out again, before it waits for others or is no more.
func (s *State) waitsNoMore(at int32) {
	if of := s.waiters.of; of != nil {
		for _, change := range s.Pending[at].Left {
			of[change] = slices.DeleteFunc(of[change], func(i int32) bool { return i == at })
		}
	}
}

// Drop takes back a change that still waits, if it does: it is never handed over.
func (s *State) Drop(change int64) { s.drop(change) }

// Dispatch notes that a start goes to the driver: what was promised is occupied.
func (s *State) Dispatch(run RunID) {
	r := &s.Runs[run]
	must("run", runTable[:], r.Status, Starting)
	s.Jobs[r.Job].Waited += s.promised(run)
	r.Status, r.Since = Starting, s.Now
	s.stampRun(run)
	s.eachNode(run, func(i int32) { s.Grants[i].reserved = false })
	s.charge(run, true)
}

// Began notes that a run is computing.
func (s *State) Began(run RunID) {
	r := &s.Runs[run]
	if r.Status == Resuming {
		r.Paused += s.Now.Sub(r.Since)
	} else {
		r.Began = s.Now
		if j := &s.Jobs[r.Job]; j.Started == unit.Never {
			j.Started = s.Now
		}
	}
	must("run", runTable[:], r.Status, Running)
	r.Status, r.Since, r.Change = Running, s.Now, 0
	s.stampRun(run)
	s.charge(run, true)
}

// Rested notes that a run computes no more and stays resident.
func (s *State) Rested(run RunID) {
	s.Runs[run].Change = 0
	s.charge(run, false)
}

// EndRun takes a run's grants back and credits its job with the running time whose
// work is kept.
func (s *State) EndRun(run RunID, kept unit.Duration) {
	r := s.Runs[run]
	j := &s.Jobs[r.Job]
	j.Executed += kept
	j.Service += int64(kept) * s.Shapes[j.Shape].Milli(r.Workers)
	j.Work += s.keptOf(run, kept)
	if j.Run == run {
		j.Run = None
	}
	if j.Leaving == run {
		j.Leaving = None
	}
	if r.Status == Promised {
		j.Waited += s.promised(run)
		s.drop(r.Change)
	}
	s.stampRun(j.Run) // of which less may be left now
	s.charge(run, false)
	s.release(run)
}

// keptOf is how much of what a run has done was done in the running time that is kept.
func (s *State) keptOf(run RunID, kept unit.Duration) unit.Duration {
	ran := s.useful(run)
	if ran <= 0 || kept >= ran {
		return s.work(run) + scaled(max(0, kept-ran), s.Runs[run].RateMicro)
	}
	high, low := bits.Mul64(uint64(s.work(run)), uint64(max(0, kept)))
	part, _ := bits.Div64(high, low, uint64(ran))
	return unit.Duration(part)
}

// SetNode changes a node's status; the index follows.
func (s *State) SetNode(id NodeID, status NodeStatus) {
	if s.Nodes[id].Status == status {
		return
	}
	must("node", nodeTable[:], s.Nodes[id].Status, status)
	s.touchNode(id).Status = status
	s.room.recount(s, id)
}

// SetDevice changes a device's status; a lost one has nothing free.
func (s *State) SetDevice(id DeviceID, status DeviceStatus) {
	dev := &s.Devices[id]
	if dev.Status == status {
		return
	}
	must("device", deviceTable[:], dev.Status, status)
	s.touchNode(dev.Node)
	was := dev.Whole()
	dev.Status = status
	if status != Reshaping {
		dev.Change = 0
	}
	s.countWhole(dev, was)
	s.room.recount(s, dev.Node)
}

// RunOf returns the slot of the given attempt of a job, or None.
func (s *State) RunOf(job JobID, attempt int32) RunID {
	if job < 0 || int(job) >= len(s.Jobs) {
		return None
	}
	j := &s.Jobs[job]
	for _, r := range [...]RunID{j.Run, j.Leaving} {
		if r != None && s.Runs[r].Attempt == attempt {
			return r
		}
	}
	return None
}
