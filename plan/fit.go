package plan

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/unit"
)

// recompute derives what a device has free from the grants on it, and what its
// node has. The device and the node must have been touched.
func (s *State) recompute(id DeviceID) {
	dev := &s.Devices[id]
	was := dev.whole()
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
	switch is := dev.whole(); {
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

// fits reports whether the grants on a device that count fit it and its partition.
func (s *State) fits(id DeviceID, counts func(*Grant) bool) bool {
	dev := &s.Devices[id]
	if milli, memory := s.sum(dev, counts); milli > 1000 || memory > dev.Memory {
		return false
	}
	model := &s.Cluster.Models[s.Nodes[dev.Node].Model]
	if len(model.Geometries) == 0 || len(model.Geometries[dev.Geometry].Parts) == 0 {
		return true
	}
	return s.fitParts(dev, model.Geometries[dev.Geometry].Parts, counts)
}

// fitParts reports whether every grant that counts finds a part of its own. The
// smallest grants choose first, each the smallest part that holds it; where a larger
// part never has less memory, as on every device sold, that finds a way if there is
// one.
func (s *State) fitParts(dev *Device, all []cluster.Part, counts func(*Grant) bool) bool {
	parts := slices.Clone(all)
	slices.SortFunc(parts, func(a, b cluster.Part) int {
		return cmp.Or(cmp.Compare(a.Milli, b.Milli), cmp.Compare(a.Memory, b.Memory))
	})
	var want []cluster.Part
	for i := dev.First; i != None; i = s.Grants[i].OnDevice {
		if g := &s.Grants[i]; counts(g) {
			want = append(want, cluster.Part{Milli: unit.Milli(g.Reserve), Memory: unit.MiB(g.Persist + g.Peak)})
		}
	}
	slices.SortFunc(want, func(a, b cluster.Part) int {
		return cmp.Or(cmp.Compare(a.Milli, b.Milli), cmp.Compare(a.Memory, b.Memory))
	})
	for _, w := range want {
		i := slices.IndexFunc(parts, func(p cluster.Part) bool { return p.Milli >= w.Milli && p.Memory >= w.Memory })
		if i < 0 {
			return false
		}
		parts = slices.Delete(parts, i, i+1)
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
		short := !s.fits(g.Device, either)
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
