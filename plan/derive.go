package plan

import (
	"cmp"
	"slices"
)

// mark says of every grant whether its run is stopping or promised.
func (s *State) mark() {
	for i := range s.Grants {
		if run := s.Grants[i].Run; run != None && int(run) < len(s.Runs) {
			s.Grants[i].freed = s.Runs[run].Status == Stopping
			s.Grants[i].reserved = s.Runs[run].Status == Promised
		}
	}
}

// Derive computes what follows from runs and grants: their marks, the lists on devices,
// what devices and nodes have free, and the index. It is for who writes the rows of a new
// State himself.
func (s *State) Derive() {
	s.mark()
	s.relink()
	for i := range s.Grants {
		g := &s.Grants[i]
		if g.Run == None {
			continue
		}
		n := &s.Nodes[g.Node]
		if g.freed {
			n.LeavingCPU += g.CPU
			n.LeavingHost += g.Host
		} else {
			n.FreeCPU -= g.CPU
			n.FreeHost -= g.Host
		}
	}
	for i := range s.Nodes {
		s.Nodes[i].FreeDevices = 0
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		d.Free = 0 // so that it is counted as whole when it is found to be
		s.recompute(DeviceID(i))
	}
	s.room, s.touched = newRoom(s), nil
}

// relink puts the grants on the lists of their devices, in the order in which runs were
// promised: the pieces of others on a device say nothing new when one comes or goes.
func (s *State) relink() {
	var runs []RunID
	for id := range s.Runs {
		if s.Runs[id].Status != Gone {
			runs = append(runs, RunID(id))
		}
	}
	slices.SortFunc(runs, func(a, b RunID) int { return cmp.Compare(s.Runs[a].Start, s.Runs[b].Start) })
	for _, run := range runs {
		for i := s.Runs[run].First; i != None; i = s.Grants[i].OfRun {
			if g := &s.Grants[i]; g.Device != None {
				dev := &s.Devices[g.Device]
				g.OnDevice, dev.First = dev.First, i
			}
		}
	}
}
