package plan

import (
	"fmt"
	"slices"
)

// Check proves a State legal from scratch: grants fit devices and partitions,
// lists and counts agree, every active job has its run, and the index of free
// capacity is what it would be if built anew, and every device-hour is in the books
// once. It returns the first thing wrong.
func (s *State) Check() error {
	seen := make([]bool, len(s.Grants))
	for id := range s.Runs {
		if err := s.checkRun(RunID(id), seen); err != nil {
			return err
		}
	}
	for id := range s.Devices {
		if err := s.checkDevice(DeviceID(id)); err != nil {
			return err
		}
	}
	for id := range s.Jobs {
		if err := s.checkJob(JobID(id)); err != nil {
			return err
		}
	}
	if err := s.checkRoom(); err != nil {
		return err
	}
	return s.Balance()
}

func (s *State) checkRun(id RunID, seen []bool) error {
	r := &s.Runs[id]
	if r.Status == Gone {
		return nil
	}
	grants := 0
	for i := r.First; i != None; i = s.Grants[i].OfRun {
		g := &s.Grants[i]
		if seen[i] {
			return fmt.Errorf("grant %d is on two lists", i)
		}
		seen[i] = true
		grants++
		if g.Run != id {
			return fmt.Errorf("grant %d is on the list of run %d but belongs to %d", i, id, g.Run)
		}
		if g.Device != None && g.Turn != 0 && r.Status.Computes() && !s.turnFree(i, anyChange) {
			return fmt.Errorf("device %d: run %d of job %d computes while another member of turn %d does", g.Device, id, r.Job, g.Turn)
		}
		if g.reserved != (r.Status == Promised) || g.freed != (r.Status == Stopping) {
			return fmt.Errorf("grant %d of a %s run is marked reserved=%v freed=%v", i, r.Status, g.reserved, g.freed)
		}
		if r.Status != Stopping && (s.Nodes[g.Node].Status == Down || g.Device != None && s.Devices[g.Device].Status.Out()) {
			return fmt.Errorf("run %d of job %d is %s on a lost device", id, r.Job, r.Status)
		}
	}
	shape := &s.Shapes[s.Jobs[r.Job].Shape]
	if want := int(r.Workers * max(1, shape.Devices)); grants != want {
		return fmt.Errorf("run %d has %d grants, its %d workers need %d", id, grants, r.Workers, want)
	}
	return nil
}

func (s *State) checkDevice(id DeviceID) error {
	dev := s.Devices[id]
	taken, mem := s.sum(&dev, promised)
	held, heldMem := s.sum(&dev, occupied)
	if dev.Free != 1000-taken || dev.Now != 1000-held || dev.FreeMemory != dev.Memory-mem || dev.NowMemory != dev.Memory-heldMem {
		return fmt.Errorf("device %d: what it has free does not follow from its grants", id)
	}
	if dev.Free < 0 {
		return fmt.Errorf("device %d is promised %d thousandths too many", id, -dev.Free)
	}
	if dev.Now < 0 {
		return fmt.Errorf("device %d is occupied %d thousandths too many", id, -dev.Now)
	}
	if dev.FreeMemory < 0 || dev.NowMemory < 0 {
		return fmt.Errorf("device %d: its memory is overrun: %d MiB free, %d MiB unoccupied", id, dev.FreeMemory, dev.NowMemory)
	}
	if guests := s.guestMemory(&dev, promised); guests > dev.FreeMemory && guests > 0 {
		return fmt.Errorf("device %d: its guests hold %d MiB, of which %d are there", id, guests, dev.FreeMemory)
	}
	if !s.fits(id, promised) {
		return fmt.Errorf("device %d: its grants do not fit geometry %d", id, dev.Geometry)
	}
	if dev.Status != Reshaping && !s.fits(id, occupied) {
		return fmt.Errorf("device %d: what occupies it does not fit geometry %d", id, dev.Geometry)
	}
	for g := dev.First; g != None; g = s.Grants[g].OnDevice {
		if s.Grants[g].Device != id {
			return fmt.Errorf("grant %d is on the list of device %d but on device %d", g, id, s.Grants[g].Device)
		}
	}
	return nil
}

func (s *State) checkJob(id JobID) error {
	j := &s.Jobs[id]
	if (j.Phase == Active) != (j.Run != None) {
		return fmt.Errorf("job %d is %s with run %d", id, j.Phase, j.Run)
	}
	for _, r := range [...]RunID{j.Run, j.Leaving} {
		if r != None && (s.Runs[r].Job != id || s.Runs[r].Status == Gone) {
			return fmt.Errorf("job %d points at run %d, which is not its own", id, r)
		}
	}
	if j.Run != None && j.Leaving != None && s.Runs[j.Run].Status != Promised {
		return fmt.Errorf("job %d has a %s run while another is still stopping", id, s.Runs[j.Run].Status)
	}
	if j.Leaving != None && s.Runs[j.Leaving].Status != Stopping {
		return fmt.Errorf("job %d: the run it is leaving is %s", id, s.Runs[j.Leaving].Status)
	}
	return nil
}

func (s *State) checkRoom() error {
	type sums struct{ taken, leaving, held, takenHost, leavingHost, heldHost int32 }
	of := make([]sums, len(s.Nodes))
	for i := range s.Grants {
		g := &s.Grants[i]
		if g.Run == None {
			continue
		}
		n := &of[g.Node]
		if g.freed {
			n.leaving, n.leavingHost = n.leaving+g.CPU, n.leavingHost+g.Host
		} else {
			n.taken, n.takenHost = n.taken+g.CPU, n.takenHost+g.Host
		}
		if !g.reserved {
			n.held, n.heldHost = n.held+g.CPU, n.heldHost+g.Host
		}
	}
	for id := range s.Nodes {
		n, sum := &s.Nodes[id], of[id]
		cores, host := int32(s.Cluster.Nodes[id].CPU)-n.OtherCPU, int32(s.Cluster.Nodes[id].Memory)-n.OtherHost
		free := int32(0)
		for d := n.First; d < n.First+DeviceID(n.Count); d++ {
			if s.Devices[d].Whole() {
				free++
			}
		}
		if free != n.FreeDevices || cores-sum.taken != n.FreeCPU || host-sum.takenHost != n.FreeHost {
			return fmt.Errorf("node %d counts %d free devices, %d cores/1000 and %d MiB; it has %d, %d and %d", id,
				n.FreeDevices, n.FreeCPU, n.FreeHost, free, cores-sum.taken, host-sum.takenHost)
		}
		if n.LeavingCPU != sum.leaving || n.LeavingHost != sum.leavingHost {
			return fmt.Errorf("node %d counts %d cores/1000 and %d MiB leaving; it has %d and %d", id,
				n.LeavingCPU, n.LeavingHost, sum.leaving, sum.leavingHost)
		}
		// What others take beside that is not ours to bound.
		if max(sum.taken, sum.held) > cores+n.OtherCPU || max(sum.takenHost, sum.heldHost) > host+n.OtherHost {
			return fmt.Errorf("node %d: more cores or host memory are promised or occupied than it has", id)
		}
	}
	return s.checkIndex()
}

// checkIndex compares the index of free capacity with one built anew.
func (s *State) checkIndex() error {
	fresh := newRoom(s)
	for m := range fresh.free {
		if fresh.free[m] != s.room.free[m] || fresh.milli[m] != s.room.milli[m] {
			return fmt.Errorf("the index counts %d free devices of model %d, there are %d", s.room.free[m], m, fresh.free[m])
		}
	}
	if !slices.Equal(fresh.sizes, s.room.sizes) {
		return fmt.Errorf("the index counts %v nodes by what they have free, there are %v", s.room.sizes, fresh.sizes)
	}
	for i := range fresh.sets {
		if !fresh.sets[i].Equal(&s.room.sets[i]) {
			return fmt.Errorf("the index of free nodes is wrong in set %d", i)
		}
	}
	for m := range fresh.partial {
		if !fresh.partial[m].Equal(&s.room.partial[m]) {
			return fmt.Errorf("the index of nodes with partly free devices is wrong for model %d", m)
		}
	}
	return nil
}
