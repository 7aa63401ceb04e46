package plan

import (
	"fmt"

	"github.com/musterdl/muster/model/cluster"
)

// What is around the engine's own work: the nodes that work is confined to, what
// work that is not ours uses, and nodes that are added.

// Allows reports whether work of a shape may be on a node: it is of an allowed model
// and in the shape's set of nodes.
func (v View) Allows(shape *Shape, id NodeID) bool {
	return shape.Models&(1<<v.s.Nodes[id].Model) != 0 && v.InSet(shape, id)
}

// InSet reports whether a node is in the set of nodes that a shape is confined to.
func (v View) InSet(shape *Shape, id NodeID) bool {
	if shape.NodeSet == 0 {
		return true
	}
	if int(shape.NodeSet) > len(v.s.NodeSets) {
		return false
	}
	set := v.s.NodeSets[shape.NodeSet-1]
	return int(id>>6) < len(set) && set[id>>6]&(1<<(id&63)) != 0
}

// NodeSets is the number of sets of nodes.
func (v View) NodeSets() int { return len(v.s.NodeSets) }

// NodeSet returns the nodes of a set, 64 to a word.
func (v View) NodeSet(set int32) []uint64 { return v.s.NodeSets[set-1] }

// Confine says which nodes a set holds from now on; a set that is not there yet has
// the number that follows the last one. Runs stay where they are.
func (s *State) Confine(set int32, nodes []uint64) {
	sets := append([][]uint64(nil), s.NodeSets...)
	for int(set) > len(sets) {
		sets = append(sets, nil)
	}
	sets[set-1] = nodes
	s.NodeSets, s.capacity = sets, nil
}

// crowded reports whether a node would get more workers than the shape allows.
func crowded(slots []Slot, shape *Shape) bool {
	if shape.PerNode == 0 {
		return false
	}
	on := map[NodeID]int32{}
	for i := range slots {
		if on[slots[i].Node] += slots[i].Workers; on[slots[i].Node] > shape.PerNode {
			return true
		}
	}
	return false
}

// Occupy says what work that is not ours uses of a node from now on: cores, host
// memory, and whole devices, the last idle ones. Where it uses more than is idle the
// node has nothing free, and what is ours on it stays.
func (s *State) Occupy(id NodeID, cpu, host, devices int32) {
	n := s.touchNode(id)
	n.FreeCPU += n.OtherCPU - cpu
	n.FreeHost += n.OtherHost - host
	n.OtherCPU, n.OtherHost = cpu, host
	s.room.recount(s, id)
	for d := n.First; d < n.First+DeviceID(n.Count); d++ {
		if s.Devices[d].Status == Elsewhere {
			devices--
		}
	}
	for d := n.First; d < n.First+DeviceID(n.Count) && devices < 0; d++ {
		if s.Devices[d].Status == Elsewhere {
			s.SetDevice(d, Steady)
			devices++
		}
	}
	for d := n.First + DeviceID(n.Count) - 1; d >= n.First && devices > 0; d-- {
		if dev := &s.Devices[d]; dev.Status == Steady && dev.First == None {
			s.SetDevice(d, Elsewhere)
			devices--
		}
	}
}

// Grow appends the nodes of another cluster, whose device models are among this
// one's, or devices of the last node. Nodes and devices keep their numbers.
func (s *State) Grow(more *cluster.Cluster) error {
	c, err := s.Cluster.Plus(more)
	if err != nil {
		return err
	}
	fresh := NewState(c)
	if last := len(s.Nodes) - 1; last >= 0 {
		n := &s.Nodes[last]
		n.FreeDevices += c.Nodes[last].Count - n.Count
		n.Count = c.Nodes[last].Count
	}
	s.Nodes = append(s.Nodes, fresh.Nodes[len(s.Nodes):]...)
	s.Devices = append(s.Devices, fresh.Devices[len(s.Devices):]...)
	s.Cluster, s.capacity, s.touched = c, nil, nil
	s.room = newRoom(s)
	if err := s.checkRoom(); err != nil {
		return fmt.Errorf("growing the cluster: %w", err)
	}
	return nil
}
