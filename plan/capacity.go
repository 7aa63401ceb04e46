package plan

import (
	"math"

	"github.com/musterdl/muster/model/cluster"
)

// How many workers go where: the one home of this rule. Placers, the calendar and the
// explanation ask it, and what it says is what a Draft can start.

// Least is the smallest legal number of workers to start with.
func (s *Shape) Least() int32 {
	if s.Elastic() {
		return min(s.Gang, s.Sizes[0])
	}
	return s.Gang
}

// Smaller returns the next smaller legal size, or 0.
func (s *Shape) Smaller(n int32) int32 {
	best := int32(0)
	if s.Gang < n && s.Elastic() {
		best = s.Gang
	}
	for _, size := range s.Sizes {
		if size < n && size > best {
			best = size
		}
	}
	return best
}

// PerDevice is how many workers go on one device, wholly free and undivided, with so
// much memory; workers that take several devices each take 1 of them.
func (s *Shape) PerDevice(memory int32) int32 {
	per := 1000 / max(1, s.Share)
	if s.Memory > 0 {
		per = min(per, memory/s.Memory)
	}
	return per
}

// Workers is how many workers go on one node with so many wholly free, undivided devices
// of so much memory each, so many cores in thousandths and so much host memory.
func (s *Shape) Workers(devices int64, memory int32, cpu, host int64) int32 {
	most := s.beside(cpu, host)
	switch {
	case s.Devices == 0:
	case s.Share == 1000 && memory < s.Memory:
		return 0
	case s.Share == 1000:
		most = min(most, devices/int64(s.Devices))
	default:
		most = min(most, devices*int64(s.PerDevice(memory)))
	}
	return int32(max(0, most))
}

// beside is how many workers go on a node as far as all but its devices is concerned.
func (s *Shape) beside(cpu, host int64) int64 {
	most := int64(math.MaxInt32)
	if s.PerNode > 0 {
		most = int64(s.PerNode)
	}
	if s.CPU > 0 {
		most = min(most, cpu/int64(s.CPU))
	}
	if s.Host > 0 {
		most = min(most, host/int64(s.Host))
	}
	return max(0, most)
}

// Capacity is how many workers of a shape a node of a cluster holds when it is idle and
// undivided.
func (s *Shape) Capacity(c *cluster.Cluster, node int32) int32 {
	n := &c.Nodes[node]
	if s.Models&(1<<n.Model) == 0 {
		return 0
	}
	return s.Workers(int64(n.Count), int32(c.Models[n.Model].Memory), int64(n.CPU), int64(n.Memory))
}

// CapacityFor is how many workers of a shape, by its number, all nodes of a set of models hold
// that it is confined to, when they are idle and undivided; but for those that are without.
func (v View) CapacityFor(shape int32, models uint64, without ...NodeID) (all int64) {
	s := v.s
	for int(shape) >= len(s.capacity) {
		of, each := &s.Shapes[len(s.capacity)], make([]int64, len(s.Cluster.Models))
		for id := range s.Cluster.Nodes {
			if v.InSet(of, NodeID(id)) {
				each[s.Cluster.Nodes[id].Model] += int64(of.Capacity(s.Cluster, int32(id)))
			}
		}
		s.capacity = append(s.capacity, each)
	}
	for m, workers := range s.capacity[shape] {
		if models&(1<<m) != 0 {
			all += workers
		}
	}
	for _, id := range without {
		if of := &s.Shapes[shape]; models&(1<<s.Cluster.Nodes[id].Model) != 0 && v.InSet(of, id) {
			all -= int64(of.Capacity(s.Cluster, int32(id)))
		}
	}
	return all
}

// Holds is how many workers of a shape a node could take at this moment.
func (v View) Holds(id NodeID, shape *Shape) int32 {
	n := &v.s.Nodes[id]
	if n.Status != Up || !v.Allows(shape, id) {
		return 0
	}
	if shape.Devices == 0 || shape.Share == 1000 {
		if shape.Devices > 0 && n.FreeDevices < shape.Devices {
			return 0
		}
		memory := int32(0)
		if n.Count > 0 {
			memory = v.s.Devices[n.First].Memory
		}
		return shape.Workers(int64(n.FreeDevices), memory, int64(n.FreeCPU), int64(n.FreeHost))
	}
	most, shares := int32(shape.beside(int64(n.FreeCPU), int64(n.FreeHost))), int32(0)
	for d := n.First; d < n.First+DeviceID(n.Count) && shares < most; d++ {
		shares += v.Shares(d, shape)
	}
	return min(most, shares)
}

// Shares is how many workers of a shape that asks for a part of a device this one has
// room for; of a cut device each takes a piece for itself.
func (v View) Shares(id DeviceID, shape *Shape) int32 {
	d := &v.s.Devices[id]
	if d.Status.Out() || d.Free < shape.Share {
		return 0
	}
	most := d.Free / shape.Share
	if shape.Memory > 0 {
		most = min(most, d.FreeMemory/shape.Memory)
	}
	if parts := v.s.partsOf(d); len(parts) > 0 {
		pieces, worker := int32(0), Grant{Reserve: shape.Share, Persist: shape.Memory}
		for k := range parts {
			if holds(&parts[k], &worker) && !v.s.partTaken(d, int16(k+1)) {
				pieces++
			}
		}
		most = min(most, pieces)
	}
	return max(0, most)
}

// HasRoom reports whether there is as much free as n workers take, wherever it is, beside what is held from
// their job, reckoned without holding it.
func (s *Shape) HasRoom(v View, n int32, beside ...Hold) bool {
	devices, groups := int64(0), int64(0)
	for i := range beside {
		h := &beside[i]
		if on := v.Node(h.Node); s.Devices > 0 && on.Status == Up && s.Models&(1<<on.Model) != 0 {
			held := min(h.Devices, on.FreeDevices)
			devices += int64(held)
			groups += int64(on.FreeDevices/s.Devices - (on.FreeDevices-held)/s.Devices)
		}
	}
	switch {
	case s.Share < 1000:
		return v.Room().FreeMilli(s.Models)-1000*devices >= s.Milli(n)
	case s.Devices > 1:
		return v.Room().Groups(s.Models, int(s.Devices))-groups >= int64(n)
	}
	return v.Room().Free(s.Models)-devices >= int64(s.WholeDevices(n))
}
