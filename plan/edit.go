package plan

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

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
	id := RunID(len(s.Runs) - 1)
	s.stampRun(id)
	return id
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

// grantSlot gives run the slot, behind its grant tail. It returns the new tail and
// whether the slot was legal; after an illegal one the draft must be rolled back.
func (s *State) grantSlot(run RunID, tail int32, slot Slot, shape *Shape, share *ShareTerms) (int32, bool) {
	if !s.sound(&slot, shape) {
		return tail, false
	}
	defer s.room.recount(s, slot.Node)
	n := s.touchNode(slot.Node)
	n.FreeCPU -= slot.Workers * shape.CPU
	n.FreeHost -= slot.Workers * shape.Host
	if n.FreeCPU < 0 && shape.CPU > 0 || n.FreeHost < 0 && shape.Host > 0 {
		return tail, false
	}
	had := s.before(run, None)
	next := n.First // the lowest device not looked at yet
	for w := range slot.Workers {
		for k := range max(1, shape.Devices) {
			g := Grant{Run: run, Node: slot.Node, Device: None, OfRun: None, OnDevice: None, Turn: share.Turn, reserved: true}
			if k == 0 {
				g.CPU, g.Host = shape.CPU, shape.Host
			}
			if shape.Devices > 0 {
				g.fillHoldings(shape, share, slot.Reserve, s.memoryOf(run, slot.Node, had+w*shape.Devices+k))
				switch {
				case slot.On != nil:
					g.Device = slot.On[w*shape.Devices+k]
				case slot.Device != None:
					g.Device = slot.Device
				default:
					if next = s.wholeFree(n, next); next == None {
						return tail, false
					}
					g.Device, next = next, next+1
				}
			}
			if g.Device != None {
				if g.Part = s.choosePart(g.Device, &g); g.Part < 0 {
					return tail, false
				}
			}
			tail = s.attach(run, tail, g)
			if g.Device != None && !(s.fits(g.Device, promised) && s.turnFree(tail, anyChange)) {
				return tail, false
			}
		}
	}
	return tail, true
}

// fillHoldings fills in what a grant holds of its device.
func (g *Grant) fillHoldings(shape *Shape, share *ShareTerms, reserve, memory int32) {
	if reserve == 0 {
		reserve = share.Milli
	}
	if reserve == 0 {
		reserve = shape.Share
	}
	if share.Guest != None {
		reserve = 0 // it lives in what others leave
	}
	g.Reserve, g.Ceiling, g.Turn = reserve, 1000, share.Turn
	if share.Ceiling > 0 {
		g.Ceiling = max(share.Ceiling, reserve)
	}
	g.Peak = min(max(0, share.Swap), memory)
	g.Persist = memory - g.Peak
}

// memoryOf is what a run holds of one of its devices, which is on a node: what its job declares,
// or else, of a published model, what the plan needs there by which it is spread.
func (s *State) memoryOf(run RunID, node NodeID, device int32) int32 {
	r, n := &s.Runs[run], &s.Nodes[node]
	declared, id := s.Shapes[s.Jobs[r.Job].Shape].Memory, r.Terms.Plan.ID
	if declared > 0 || n.Count == 0 || id < 0 || int(id) >= len(s.Plans) || s.View().ProfileOf(r.Job).Stages > 0 {
		return declared
	}
	return min(int32(s.Plans[id].Spare.Peak(device)), s.Devices[n.First].Memory)
}

// before is how many grants a run has before one of its own, or in all.
func (s *State) before(run RunID, grant int32) (n int32) {
	for i := s.Runs[run].First; i != None && i != grant; i = s.Grants[i].OfRun {
		n++
	}
	return n
}

// resettle gives the grants of a run what its new terms say, and reports whether
// that is legal; if it is not, the draft must be rolled back.
func (s *State) resettle(run RunID) bool {
	share, shape := &s.Runs[run].Terms.Share, &s.Shapes[s.Jobs[s.Runs[run].Job].Shape]
	if s.Runs[run].Change != 0 {
		return false // it is on its way from one status to another
	}
	s.eachNode(run, func(i int32) {
		if g := s.touchGrant(i); g.Device != None {
			keep := int32(0)
			if share.Milli == 0 {
				keep = g.Reserve // 0 of one that was a guest: then what its job asks
			}
			g.fillHoldings(shape, share, keep, s.memoryOf(run, g.Node, s.before(run, i)))
		}
	})
	for i := s.Runs[run].First; i != None; i = s.Grants[i].OfRun {
		g := &s.Grants[i]
		if g.Device != None && (!s.fits(g.Device, either) || !s.holdsAll(g.Device, promised) || s.Runs[run].Status.Computes() && !s.turnFree(i, settled)) {
			return false
		}
	}
	return true
}

// sound reports whether a slot names what exists, is healthy and is of a model the
// shape may use.
func (s *State) sound(slot *Slot, shape *Shape) bool {
	if slot.Node < 0 || int(slot.Node) >= len(s.Nodes) {
		return false
	}
	n := &s.Nodes[slot.Node]
	if n.Status != Up || !s.View().Allows(shape, slot.Node) || slot.Reserve < 0 || slot.Reserve > 1000 {
		return false
	}
	healthy := func(d DeviceID) bool {
		return d >= n.First && d < n.First+DeviceID(n.Count) && !s.Devices[d].Status.Out()
	}
	if slot.On == nil {
		// A worker's own devices are different ones: one name cannot stand for several.
		return slot.Device == None || shape.Devices == 1 && healthy(slot.Device)
	}
	if len(slot.On) != int(slot.Workers*shape.Devices) {
		return false
	}
	for i, d := range slot.On {
		worker := slot.On[i-i%int(shape.Devices) : i]
		if !healthy(d) || slices.Contains(worker, d) {
			return false
		}
	}
	return true
}

// wholeFree returns the lowest wholly free device of a node at or after from; what
// frees soon counts as free.
func (s *State) wholeFree(n *Node, from DeviceID) DeviceID {
	for d := from; d < n.First+DeviceID(n.Count); d++ {
		if s.Devices[d].Whole() {
			return d
		}
	}
	return None
}

// Whole reports whether a device is wholly free, healthy and undivided.
func (d *Device) Whole() bool { return d.Free == 1000 && !d.Status.Out() && d.Geometry == 0 }

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

// leave marks a run as stopping: its room may be promised, but is still occupied.
func (s *State) leave(run RunID) {
	r := s.touchRun(run)
	must("run", runTable[:], r.Status, Stopping)
	if r.Status == Suspended || r.Status == Resuming {
		r.Paused += s.Now.Sub(r.Since)
	}
	r.Status, r.Since = Stopping, s.Now
	s.eachNode(run, func(i int32) {
		s.touchGrant(i).freed = true
		n := s.touchNode(s.Grants[i].Node)
		n.FreeCPU += s.Grants[i].CPU
		n.FreeHost += s.Grants[i].Host
		n.LeavingCPU += s.Grants[i].CPU
		n.LeavingHost += s.Grants[i].Host
	})
}

// release takes a run's grants back and frees its slot.
func (s *State) release(run RunID) {
	s.eachNode(run, func(i int32) {
		g := &s.Grants[i]
		n := s.touchNode(g.Node)
		if n.Trial.On && n.Trial.Run == run && n.Status == Quarantined {
			n.Status = Up // whatever ended the run said nothing of the node: another may try it
		}
		if g.freed {
			n.LeavingCPU -= g.CPU
			n.LeavingHost -= g.Host
		} else {
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
				s.room.recount(s, node)
			}
			node = g.Node
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
		s.room.recount(s, node)
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
