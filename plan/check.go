package plan

import "fmt"

// Check proves a State legal from scratch: grants fit devices and partitions,
// lists and counts agree, every active job has its run, and the index of free
// capacity is what it would be if built anew. It returns the first thing wrong.
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
	return s.checkRoom()
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
		if g.reserved != (r.Status == Promised) || g.freed != (r.Status == Stopping) {
			return fmt.Errorf("grant %d of a %s run is marked reserved=%v freed=%v", i, r.Status, g.reserved, g.freed)
		}
		if r.Status != Stopping && (s.Nodes[g.Node].Status == Down || g.Device != None && s.Devices[g.Device].Status == Lost) {
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
	taken, mem := s.sum(&dev, func(g *Grant) bool { return !g.freed })
	held, heldMem := s.sum(&dev, func(g *Grant) bool { return !g.reserved })
	if dev.Free != 1000-taken || dev.Now != 1000-held || dev.FreeMemory != dev.Memory-mem || dev.NowMemory != dev.Memory-heldMem {
		return fmt.Errorf("device %d: what it has free does not follow from its grants", id)
	}
	if dev.Free < 0 {
		return fmt.Errorf("device %d is promised %d thousandths too many", id, -dev.Free)
	}
	if dev.Now < 0 {
		return fmt.Errorf("device %d is occupied %d thousandths too many", id, -dev.Now)
	}
	if dev.Status != Reshaping && !s.legal(id) {
		return fmt.Errorf("device %d: its grants do not fit geometry %d", id, dev.Geometry)
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
	if j.Leaving != None && s.Runs[j.Leaving].Status != Stopping {
		return fmt.Errorf("job %d: the run it is leaving is %s", id, s.Runs[j.Leaving].Status)
	}
	return nil
}

func (s *State) checkRoom() error {
	cpu, host := make([]int32, len(s.Nodes)), make([]int32, len(s.Nodes))
	for i := range s.Grants {
		if g := &s.Grants[i]; g.Run != None && !g.freed {
			cpu[g.Node] += g.CPU
			host[g.Node] += g.Host
		}
	}
	for id := range s.Nodes {
		n, is := &s.Nodes[id], &s.Cluster.Nodes[id]
		free := int32(0)
		for d := n.First; d < n.First+DeviceID(n.Count); d++ {
			if s.Devices[d].Free == 1000 && s.Devices[d].Status != Lost {
				free++
			}
		}
		if free != n.FreeDevices || int32(is.CPU)-cpu[id] != n.FreeCPU || int32(is.Memory)-host[id] != n.FreeHost {
			return fmt.Errorf("node %d counts %d free devices, %d cores/1000 and %d MiB; it has %d, %d and %d", id,
				n.FreeDevices, n.FreeCPU, n.FreeHost, free, int32(is.CPU)-cpu[id], int32(is.Memory)-host[id])
		}
	}
	fresh := newRoom(s)
	for m := range fresh.free {
		if fresh.free[m] != s.room.free[m] || fresh.milli[m] != s.room.milli[m] {
			return fmt.Errorf("the index counts %d free devices of model %d, there are %d", s.room.free[m], m, fresh.free[m])
		}
	}
	for i := range fresh.sets {
		for w := range fresh.sets[i].low {
			if fresh.sets[i].low[w] != s.room.sets[i].low[w] {
				return fmt.Errorf("the index of free nodes is wrong in set %d", i)
			}
		}
	}
	return nil
}
