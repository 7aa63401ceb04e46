package plan

import "slices"

// undo remembers the records a draft has touched, newest last.
type undo struct {
	kinds    []undoKind
	ids      []int32
	jobs     []Job
	runs     []Run
	grants   []Grant
	devices  []Device
	nodes    []Node
	pending  []Pending
	accounts []Account
	back     []NodeID // scratch: nodes to be counted anew
}

func (u *undo) reset() {
	u.kinds, u.ids = u.kinds[:0], u.ids[:0]
	u.jobs, u.runs, u.grants, u.devices, u.nodes = u.jobs[:0], u.runs[:0], u.grants[:0], u.devices[:0], u.nodes[:0]
	u.pending, u.accounts = u.pending[:0], u.accounts[:0]
}

type undoKind uint8

const (
	undoJob undoKind = iota
	undoRun
	undoGrant
	undoDevice
	undoNode
	undoPending
	undoNewRun   // a slot was appended
	undoNewGrant // likewise
	undoReuseRun
	undoReuseGrant
	undoFreeRun
	undoFreeGrant
	undoPend
	undoAccount
)

func (u *undo) add(kind undoKind, id int32) {
	u.kinds = append(u.kinds, kind)
	u.ids = append(u.ids, id)
}

func pop[T any](s *[]T) T {
	v := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return v
}

// rollback undoes until n entries are left.
func (s *State) rollback(n int) {
	u := s.log
	s.log = nil
	for len(u.kinds) > n {
		kind, id := pop(&u.kinds), pop(&u.ids)
		switch kind {
		case undoJob:
			s.stampRun(s.Jobs[id].Run)
			s.Jobs[id] = pop(&u.jobs)
			s.stampRun(s.Jobs[id].Run)
		case undoRun:
			s.Runs[id] = pop(&u.runs)
			s.stampRun(RunID(id))
		case undoGrant:
			s.Grants[id] = pop(&u.grants)
		case undoDevice:
			s.Devices[id] = pop(&u.devices)
			u.edited(s.Devices[id].Node)
		case undoNode:
			s.Nodes[id] = pop(&u.nodes)
			s.stampNode(NodeID(id))
			u.edited(NodeID(id))
		case undoPending:
			s.waitsNoMore(id)
			s.Pending[id] = pop(&u.pending)
			s.waitsFor(id)
		case undoAccount:
			s.Accounts[id] = pop(&u.accounts)
		case undoNewRun:
			s.Runs = s.Runs[:len(s.Runs)-1]
		case undoNewGrant:
			s.Grants = s.Grants[:len(s.Grants)-1]
		case undoReuseRun:
			s.FreeRuns = append(s.FreeRuns, RunID(id))
		case undoReuseGrant:
			s.FreeGrants = append(s.FreeGrants, id)
		case undoFreeRun:
			pop(&s.FreeRuns)
		case undoFreeGrant:
			pop(&s.FreeGrants)
		case undoPend:
			s.waitsNoMore(int32(len(s.Pending) - 1))
			pop(&s.Pending)
		}
	}
	for _, id := range u.back {
		s.room.recount(s, id)
	}
	u.back, s.log = u.back[:0], u
}

// edited notes that something on a node is as it was.
func (u *undo) edited(id NodeID) {
	if last := len(u.back) - 1; last < 0 || u.back[last] != id {
		u.back = append(u.back, id)
	}
}

func (s *State) touchJob(id JobID) *Job {
	if s.log != nil {
		s.log.add(undoJob, int32(id))
		s.log.jobs = append(s.log.jobs, s.Jobs[id])
	}
	s.stampRun(s.Jobs[id].Run)
	return &s.Jobs[id]
}

func (s *State) touchRun(id RunID) *Run {
	if s.log != nil {
		s.log.add(undoRun, int32(id))
		s.log.runs = append(s.log.runs, s.Runs[id])
	}
	s.stampRun(id)
	return &s.Runs[id]
}

func (s *State) touchGrant(id int32) *Grant {
	if s.log != nil {
		s.log.add(undoGrant, id)
		s.log.grants = append(s.log.grants, s.Grants[id])
	}
	return &s.Grants[id]
}

// touchDevice is for those who count the device's node anew once they are done, unless the
// room index does not see what they change.
func (s *State) touchDevice(id DeviceID) *Device {
	if s.log != nil {
		s.log.add(undoDevice, int32(id))
		s.log.devices = append(s.log.devices, s.Devices[id])
	}
	return &s.Devices[id]
}

func (s *State) touchNode(id NodeID) *Node {
	if s.log != nil {
		s.log.add(undoNode, int32(id))
		s.log.nodes = append(s.log.nodes, s.Nodes[id])
	}
	s.stampNode(id)
	return &s.Nodes[id]
}

func (s *State) stampNode(id NodeID) {
	s.stamp++
	s.Nodes[id].Stamp = s.stamp
	if s.touched != nil {
		s.touched.add(id, len(s.Nodes))
	}
}

// stampRun notes that something about a run, or about its job, changes.
func (s *State) stampRun(id RunID) {
	if id == None {
		return
	}
	for len(s.runStamps) <= int(id) {
		s.runStamps = append(s.runStamps, 0)
	}
	s.stamp++
	s.runStamps[id] = s.stamp
}

// RunStamps are, by slot, what changes whenever anything about a run or its job does: to be
// compared. Slots behind them never changed.
func (v View) RunStamps() []int64 { return v.s.runStamps }

func (s *State) pend(p Pending) {
	if s.log != nil {
		s.log.add(undoPend, 0)
	}
	s.Pending = append(s.Pending, p)
	s.waitsFor(int32(len(s.Pending) - 1))
}

// drop withdraws a pending change.
func (s *State) drop(change int64) {
	for i := range s.Pending {
		if s.Pending[i].Change.ID == change {
			if s.log != nil {
				s.log.add(undoPending, int32(i))
				s.log.pending = append(s.log.pending, s.Pending[i])
			}
			s.Pending[i].Gone = true
		}
	}
}

// supersede lets those that wait for one change wait for another in its stead.
func (s *State) supersede(old, change int64) {
	if old == 0 {
		return
	}
	for i := range s.Pending {
		k := slices.Index(s.Pending[i].Left, old)
		if k < 0 || s.Pending[i].Gone {
			continue
		}
		if s.log != nil {
			s.log.add(undoPending, int32(i))
			s.log.pending = append(s.log.pending, s.Pending[i])
		}
		left := slices.Clone(s.Pending[i].Left)
		if left[k] = change; slices.Index(left, change) != k || slices.Contains(left[k+1:], change) {
			left = slices.Delete(left, k, k+1)
		}
		s.waitsNoMore(int32(i))
		s.Pending[i].Left = left
		s.waitsFor(int32(i))
	}
}
