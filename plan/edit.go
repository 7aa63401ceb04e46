package plan

import (
	"slices"

	"github.com/musterdl/muster/cluster"

	"github.com/musterdl/muster/unit"
)

// undo remembers the records a draft has touched, newest last.
type undo struct {
	kinds   []undoKind
	ids     []int32
	jobs    []Job
	runs    []Run
	grants  []Grant
	devices []Device
	nodes   []Node
	pending []Pending
}

func (u *undo) reset() {
	u.kinds, u.ids = u.kinds[:0], u.ids[:0]
	u.jobs, u.runs, u.grants, u.devices, u.nodes = u.jobs[:0], u.runs[:0], u.grants[:0], u.devices[:0], u.nodes[:0]
	u.pending = u.pending[:0]
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
			s.Jobs[id] = pop(&u.jobs)
		case undoRun:
			s.Runs[id] = pop(&u.runs)
		case undoGrant:
			s.Grants[id] = pop(&u.grants)
		case undoDevice:
			s.room.remove(s, s.Devices[id].Node)
			s.Devices[id] = pop(&u.devices)
			s.room.add(s, s.Devices[id].Node)
		case undoNode:
			s.room.remove(s, NodeID(id))
			s.Nodes[id] = pop(&u.nodes)
			s.room.add(s, NodeID(id))
			s.stampNode(NodeID(id))
		case undoPending:
			s.Pending[id] = pop(&u.pending)
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
			pop(&s.Pending)
		}
	}
	s.log = u
}

func (s *State) touchJob(id JobID) *Job {
	if s.log != nil {
		s.log.add(undoJob, int32(id))
		s.log.jobs = append(s.log.jobs, s.Jobs[id])
	}
	return &s.Jobs[id]
}

func (s *State) touchRun(id RunID) *Run {
	if s.log != nil {
		s.log.add(undoRun, int32(id))
		s.log.runs = append(s.log.runs, s.Runs[id])
	}
	return &s.Runs[id]
}

func (s *State) touchGrant(id int32) *Grant {
	if s.log != nil {
		s.log.add(undoGrant, id)
		s.log.grants = append(s.log.grants, s.Grants[id])
	}
	return &s.Grants[id]
}

// touchDevice must be called with the node out of the room index, or before a
// change the index does not see.
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
}

func (s *State) pend(p Pending) {
	if s.log != nil {
		s.log.add(undoPend, 0)
	}
	s.Pending = append(s.Pending, p)
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

func (s *State) newRun() RunID {
	fresh := Run{Status: Promised, First: None, Began: unit.Never, Until: unit.Never, Since: s.Now}
	if n := len(s.FreeRuns); n > 0 {
		id := pop(&s.FreeRuns)
		if s.log != nil {
			s.log.add(undoReuseRun, int32(id))
		}
		*s.touchRun(id) = fresh
		return id
	}
	s.Runs = append(s.Runs, fresh)
	if s.log != nil {
		s.log.add(undoNewRun, 0)
	}
	return RunID(len(s.Runs) - 1)
}

func (s *State) newGrant() int32 {
	if n := len(s.FreeGrants); n > 0 {
		id := pop(&s.FreeGrants)
		if s.log != nil {
			s.log.add(undoReuseGrant, id)
			s.touchGrant(id)
		}
		return id
	}
	s.Grants = append(s.Grants, Grant{})
	if s.log != nil {
		s.log.add(undoNewGrant, 0)
	}
	return int32(len(s.Grants) - 1)
}

// take gives run the slot, behind its grant tail. It returns the new tail and
// whether the slot was legal; after an illegal one the draft must be rolled back.
func (s *State) take(run RunID, tail int32, slot Slot, shape *Shape, turn int32) (int32, bool) {
	node := &s.Nodes[slot.Node]
	if node.Status != Up || shape.Models&(1<<node.Model) == 0 || slot.Workers <= 0 {
		return tail, false
	}
	s.room.remove(s, slot.Node)
	defer s.room.add(s, slot.Node)
	n := s.touchNode(slot.Node)
	n.FreeCPU -= slot.Workers * shape.CPU
	n.FreeHost -= slot.Workers * shape.Host
	if n.FreeCPU < 0 && shape.CPU > 0 || n.FreeHost < 0 && shape.Host > 0 {
		return tail, false
	}
	next := n.First // the lowest device not looked at yet
	for range slot.Workers {
		for k := range max(1, shape.Devices) {
			g := Grant{Run: run, Node: slot.Node, Device: None, OfRun: None, OnDevice: None, Turn: turn, reserved: true}
			if k == 0 {
				g.CPU, g.Host = shape.CPU, shape.Host
			}
			if shape.Devices > 0 {
				g.Device, g.Reserve, g.Ceiling, g.Persist = slot.Device, shape.Share, 1000, shape.Memory
				if slot.Reserve > 0 {
					g.Reserve = slot.Reserve
				}
				if g.Device == None {
					if next = s.wholeFree(n, next); next == None {
						return tail, false
					}
					g.Device, next = next, next+1
				}
				if s.Devices[g.Device].Node != slot.Node || s.Devices[g.Device].Status == Lost {
					return tail, false
				}
			}
			tail = s.attach(run, tail, g)
			if g.Device != None && !s.legal(g.Device) {
				return tail, false
			}
		}
	}
	return tail, true
}

// wholeFree returns the lowest wholly free device of a node at or after from,
// with a preference for none: what frees soon counts as free.
func (s *State) wholeFree(n *Node, from DeviceID) DeviceID {
	for d := from; d < n.First+DeviceID(n.Count); d++ {
		if s.Devices[d].Free == 1000 && s.Devices[d].Status != Lost {
			return d
		}
	}
	return None
}

func (s *State) attach(run RunID, tail int32, g Grant) int32 {
	id := s.newGrant()
	if tail == None {
		s.touchRun(run).First = id
	} else {
		s.touchGrant(tail).OfRun = id
	}
	if g.Device != None {
		dev := s.touchDevice(g.Device)
		g.OnDevice, dev.First = dev.First, id
	}
	s.Grants[id] = g
	if g.Device != None {
		s.recompute(g.Device)
	}
	return id
}

// recompute derives what a device has free from the grants on it, and what its
// node has. The device and the node must have been touched.
func (s *State) recompute(id DeviceID) {
	dev := &s.Devices[id]
	wasFree := dev.Free == 1000 && dev.Status != Lost
	taken, takenMem := s.sum(dev, func(g *Grant) bool { return !g.freed })
	held, heldMem := s.sum(dev, func(g *Grant) bool { return !g.reserved })
	dev.Free, dev.FreeMemory = 1000-taken, dev.Memory-takenMem
	dev.Now, dev.NowMemory = 1000-held, dev.Memory-heldMem
	if isFree := dev.Free == 1000 && dev.Status != Lost; isFree != wasFree {
		if isFree {
			s.Nodes[dev.Node].FreeDevices++
		} else {
			s.Nodes[dev.Node].FreeDevices--
		}
	}
}

// sum adds up the grants on a device that count: members of one turn alternate,
// so a turn takes its largest member's compute and peak memory, while what
// persists of each stays.
func (s *State) sum(dev *Device, counts func(*Grant) bool) (milli, memory int32) {
	for i := dev.First; i != None; i = s.Grants[i].OnDevice {
		g := &s.Grants[i]
		if !counts(g) {
			continue
		}
		memory += g.Persist
		most, peak := g.Reserve, g.Peak
		if g.Turn != 0 {
			if s.turnCounted(dev, i, counts) {
				continue
			}
			for o := g.OnDevice; o != None; o = s.Grants[o].OnDevice {
				if other := &s.Grants[o]; other.Turn == g.Turn && counts(other) {
					most, peak = max(most, other.Reserve), max(peak, other.Peak)
				}
			}
		}
		milli, memory = milli+most, memory+peak
	}
	return milli, memory
}

// turnCounted reports whether a member of grant i's turn stands before it on the
// device's list and counts.
func (s *State) turnCounted(dev *Device, i int32, counts func(*Grant) bool) bool {
	for o := dev.First; o != i; o = s.Grants[o].OnDevice {
		if other := &s.Grants[o]; other.Turn == s.Grants[i].Turn && counts(other) {
			return true
		}
	}
	return false
}

// legal reports whether what is promised on a device fits it and its partition.
func (s *State) legal(id DeviceID) bool {
	dev := &s.Devices[id]
	if dev.Free < 0 || dev.FreeMemory < 0 && s.memoryAsked(dev) {
		return false
	}
	model := &s.Cluster.Models[s.Nodes[dev.Node].Model]
	if len(model.Geometries) == 0 || len(model.Geometries[dev.Geometry].Parts) == 0 {
		return true
	}
	// Every grant needs a part of its own; the smallest that holds it.
	parts := slices.Clone(model.Geometries[dev.Geometry].Parts)
	slices.SortFunc(parts, func(a, b cluster.Part) int { return int(a.Milli - b.Milli) })
	var want []int32
	for g := dev.First; g != None; g = s.Grants[g].OnDevice {
		if !s.Grants[g].freed {
			want = append(want, s.Grants[g].Reserve)
		}
	}
	slices.Sort(want)
	p := 0
	for _, w := range want {
		for p < len(parts) && int32(parts[p].Milli) < w {
			p++
		}
		if p == len(parts) {
			return false
		}
		p++
	}
	return true
}

func (s *State) memoryAsked(dev *Device) bool {
	for g := dev.First; g != None; g = s.Grants[g].OnDevice {
		if s.Grants[g].Persist+s.Grants[g].Peak > 0 {
			return true
		}
	}
	return false
}

// blockers adds to after the changes that a new run has to wait for: runs that
// still occupy its room, turns that are being ended, devices being reshaped.
func (s *State) blockers(run RunID, after []int64) []int64 {
	add := func(change int64) {
		if change != 0 && !slices.Contains(after, change) {
			after = append(after, change)
		}
	}
	for i := s.Runs[run].First; i != None; i = s.Grants[i].OfRun {
		g := &s.Grants[i]
		if g.Device == None {
			continue
		}
		dev := &s.Devices[g.Device]
		add(dev.Change)
		short := dev.Now < g.Reserve || dev.NowMemory < g.Persist+g.Peak
		for o := dev.First; o != None; o = s.Grants[o].OnDevice {
			other := &s.Grants[o]
			if other.Run == run {
				continue
			}
			if other.freed && short || g.Turn != 0 && other.Turn == g.Turn {
				add(s.Runs[other.Run].Change)
			}
		}
	}
	return after
}

// leave marks a run as stopping: its room may be promised, but is still occupied.
func (s *State) leave(run RunID) {
	r := s.touchRun(run)
	must("run", runTable[:], r.Status, Stopping)
	r.Status, r.Since = Stopping, s.Now
	s.eachNode(run, func(i int32) {
		s.touchGrant(i).freed = true
		n := s.touchNode(s.Grants[i].Node)
		n.FreeCPU += s.Grants[i].CPU
		n.FreeHost += s.Grants[i].Host
	})
}

// release takes a run's grants back and frees its slot.
func (s *State) release(run RunID) {
	s.eachNode(run, func(i int32) {
		g := &s.Grants[i]
		if !g.freed {
			n := s.touchNode(g.Node)
			n.FreeCPU += g.CPU
			n.FreeHost += g.Host
		}
		if g.Device != None {
			s.unlink(g.Device, i)
		}
	})
	for i := s.Runs[run].First; i != None; {
		next := s.Grants[i].OfRun
		s.touchGrant(i)
		s.Grants[i] = Grant{Run: None, Device: None, OfRun: None, OnDevice: None}
		s.FreeGrants = append(s.FreeGrants, i)
		if s.log != nil {
			s.log.add(undoFreeGrant, 0)
		}
		i = next
	}
	r := s.touchRun(run)
	must("run", runTable[:], r.Status, Gone)
	*r = Run{Job: None, Status: Gone, First: None, Began: unit.Never, Until: unit.Never}
	s.FreeRuns = append(s.FreeRuns, run)
	if s.log != nil {
		s.log.add(undoFreeRun, 0)
	}
}

// eachNode calls f for every grant of a run with its node out of the room index
// and its device touched, and recomputes the device behind it.
func (s *State) eachNode(run RunID, f func(grant int32)) {
	node := NodeID(None)
	for i := s.Runs[run].First; i != None; i = s.Grants[i].OfRun {
		if g := &s.Grants[i]; g.Node != node {
			if node != None {
				s.room.add(s, node)
			}
			node = g.Node
			s.room.remove(s, node)
			s.touchNode(node)
		}
		device := s.Grants[i].Device
		if device != None {
			s.touchDevice(device)
		}
		f(i)
		if device != None {
			s.recompute(device)
		}
	}
	if node != None {
		s.room.add(s, node)
	}
}

func (s *State) unlink(device DeviceID, grant int32) {
	dev := &s.Devices[device]
	if dev.First == grant {
		dev.First = s.Grants[grant].OnDevice
		return
	}
	for i := dev.First; i != None; i = s.Grants[i].OnDevice {
		if s.Grants[i].OnDevice == grant {
			s.touchGrant(i).OnDevice = s.Grants[grant].OnDevice
			return
		}
	}
	panic("plan: a grant is not on its device's list")
}
