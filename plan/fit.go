package plan

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
)

// recompute derives what a device has free from the grants on it, and what its
// node has. The device and the node must have been touched.
func (s *State) recompute(id DeviceID) {
	dev := &s.Devices[id]
	was := dev.Whole()
	taken, takenMem := s.sum(dev, promised)
	held, heldMem := s.sum(dev, occupied)
	dev.Free, dev.FreeMemory = 1000-taken, dev.Memory-takenMem
	dev.Now, dev.NowMemory = 1000-held, dev.Memory-heldMem
	if dev.held {
		dev.Free, dev.FreeMemory = 0, 0
	}
	s.countWhole(dev, was)
}

// countWhole keeps a node's count of wholly free devices up to date with a device
// that may have become one, or ceased to be.
func (s *State) countWhole(dev *Device, was bool) {
	switch is := dev.Whole(); {
	case is && !was:
		s.Nodes[dev.Node].FreeDevices++
	case was && !is:
		s.Nodes[dev.Node].FreeDevices--
	}
}

// The sets of grants that sums are taken over: what is promised to somebody, what
// occupies a device at this moment, and both.
func promised(g *Grant) bool { return !g.freed }
func occupied(g *Grant) bool { return !g.reserved }
func either(*Grant) bool     { return true }

// sum adds up the grants on a device that count: members of one turn alternate,
// so a turn takes its largest member's compute and peak memory, while what
// persists of each stays.
func (s *State) sum(dev *Device, counts func(*Grant) bool) (milli, memory int32) {
	for i := dev.First; i != None; i = s.Grants[i].OnDevice {
		g := &s.Grants[i]
		if !counts(g) || s.guest(g) {
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

// fits reports whether the grants on a device that count fit it and its partition.
// Guests reserve nothing and give way: they count only where they are told to.
func (s *State) fits(id DeviceID, counts func(*Grant) bool) bool {
	dev := &s.Devices[id]
	if milli, memory := s.sum(dev, counts); milli > 1000 || memory > dev.Memory {
		return false
	}
	parts := s.partsOf(dev)
	return len(parts) == 0 || s.fitParts(dev, parts, counts)
}

// partsOf are the parts that a device is cut into; none of one that is whole, which
// shares divide as they like.
func (s *State) partsOf(dev *Device) []cluster.Part {
	model := &s.Cluster.Models[s.Nodes[dev.Node].Model]
	if dev.Geometry == 0 {
		return nil
	}
	return model.Geometries[dev.Geometry].Parts
}

// guest reports whether a grant is that of a guest.
func (s *State) guest(g *Grant) bool { return s.Runs[g.Run].Terms.Share.Guest != None }

// guestMemory is what the guests on a device that count hold of its memory.
func (s *State) guestMemory(dev *Device, counts func(*Grant) bool) (memory int32) {
	for i := dev.First; i != None; i = s.Grants[i].OnDevice {
		if g := &s.Grants[i]; counts(g) && s.guest(g) {
			memory += g.Persist + g.Peak
		}
	}
	return memory
}

// holdsAll reports whether a device has the memory of all that counts, guests too.
func (s *State) holdsAll(id DeviceID, counts func(*Grant) bool) bool {
	dev := &s.Devices[id]
	guests := s.guestMemory(dev, counts)
	if guests == 0 {
		return true
	}
	_, memory := s.sum(dev, counts)
	return memory+guests <= dev.Memory
}

// choosePart is the smallest part of a cut device that holds a grant and that nobody
// has who stays, counted from 1; 0 where the device is whole, -1 where there is none.
func (s *State) choosePart(id DeviceID, g *Grant) int16 {
	dev := &s.Devices[id]
	parts, best := s.partsOf(dev), int16(-1)
	if len(parts) == 0 {
		return 0
	}
	for k := range parts {
		part := int16(k + 1)
		if !holds(&parts[k], g) || s.partTaken(dev, part) {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(parts[k].Milli, parts[best-1].Milli), cmp.Compare(parts[k].Memory, parts[best-1].Memory)) < 0 {
			best = part
		}
	}
	return best
}

func holds(p *cluster.Part, g *Grant) bool {
	return p.Milli >= unit.Milli(g.Reserve) && p.Memory >= unit.MiB(g.Persist+g.Peak)
}

func (s *State) partTaken(dev *Device, part int16) bool {
	for i := dev.First; i != None; i = s.Grants[i].OnDevice {
		if g := &s.Grants[i]; g.Part == part && !g.freed {
			return true
		}
	}
	return false
}

// fitParts reports whether every grant that counts has a part to itself that holds it.
func (s *State) fitParts(dev *Device, parts []cluster.Part, counts func(*Grant) bool) bool {
	for i := dev.First; i != None; i = s.Grants[i].OnDevice {
		g := &s.Grants[i]
		if !counts(g) {
			continue
		}
		if g.Part < 1 || int(g.Part) > len(parts) || !holds(&parts[g.Part-1], g) {
			return false
		}
		for o := g.OnDevice; o != None; o = s.Grants[o].OnDevice {
			if other := &s.Grants[o]; counts(other) && other.Part == g.Part {
				return false
			}
		}
	}
	return true
}

// turnFree reports whether none of those that take turns with a grant on its device
// computes, or is being moved in a way that moving forbids.
func (s *State) turnFree(grant int32, moving func(*Run) bool) bool {
	g := &s.Grants[grant]
	if g.Turn == 0 {
		return true
	}
	for o := s.Devices[g.Device].First; o != None; o = s.Grants[o].OnDevice {
		other := &s.Grants[o]
		if other.Run == g.Run || other.Turn != g.Turn {
			continue
		}
		if r := &s.Runs[other.Run]; r.Status.Computes() || !moving(r) {
			return false
		}
	}
	return true
}

// anyChange allows the others of a turn to be on their way out: one waits for them.
func anyChange(*Run) bool { return true }

// settled wants the others of a turn to be at rest.
func settled(r *Run) bool { return r.Change == 0 }

// blockers collects the changes that a new run has to wait for: runs that still
// occupy its room, turns that are being ended, devices being reshaped. A promise
// made earlier and not carried out yet has the better claim to what is unoccupied,
// so both count.
func (s *State) blockers(run RunID, after []int64) []int64 {
	add := func(change int64) {
		if change != 0 && !slices.Contains(after, change) {
			after = append(after, change)
		}
	}
	for i := s.Runs[run].First; i != None; i = s.Grants[i].OfRun {
		g := &s.Grants[i]
		if n := &s.Nodes[g.Node]; g.CPU > 0 && n.FreeCPU < n.LeavingCPU || g.Host > 0 && n.FreeHost < n.LeavingHost {
			s.eachLeaving(g.Node, add)
		}
		if g.Device == None {
			continue
		}
		dev := &s.Devices[g.Device]
		add(dev.Change)
		short := !s.fits(g.Device, either) || !s.holdsAll(g.Device, either)
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

// eachLeaving calls f for the stops under way of runs on a node.
func (s *State) eachLeaving(node NodeID, f func(change int64)) {
	for id := range s.Runs {
		if s.Runs[id].Status != Stopping {
			continue
		}
		for i := s.Runs[id].First; i != None; i = s.Grants[i].OfRun {
			if s.Grants[i].Node == node {
				f(s.Runs[id].Change)
				break
			}
		}
	}
}

// Shared reports whether there is more than one grant on a device.
func (v View) Shared(id DeviceID) bool {
	first := v.s.Devices[id].First
	return first != None && v.s.Grants[first].OnDevice != None
}

// Alone is the run that has the only grant on a device; None where there is none, or several.
func (v View) Alone(id DeviceID) RunID {
	first := v.s.Devices[id].First
	if first == None || v.Shared(id) {
		return None
	}
	return v.s.Grants[first].Run
}

// Beside reports whether a run has less of a device than its job asks for: as a guest, or in
// a smaller part. What it does there is done beside others that have the rest.
func (v View) Beside(id RunID) bool {
	run := v.Run(id)
	beside, asked := run.Terms.Share.Guest != None, v.Shape(run.Job).Share
	v.GrantsOf(id, func(g Grant) {
		has := g.Reserve
		if g.Part > 0 {
			has = int32(v.PartOf(g).Milli)
		}
		beside = beside || g.Device != None && has < asked
	})
	return beside
}

// PartOf is the part of a cut device that a grant has.
func (v View) PartOf(g Grant) cluster.Part { return v.s.partsOf(&v.s.Devices[g.Device])[g.Part-1] }
