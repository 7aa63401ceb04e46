package plan

import "slices"

// Rent sends for a node that can be rented. It takes runs when it has come.
func (d *Draft) Rent(node NodeID, reason Reason) bool {
	s := d.s
	if node < 0 || int(node) >= len(s.Nodes) || s.Nodes[node].Status != Away {
		return false
	}
	s.turnNode(node, Coming)
	d.emit(Change{Job: None, Run: None, Device: None, Node: node, Verb: Rent, Reason: reason})
	return true
}

// Return gives a rented node back, of which nothing is in use or promised.
func (d *Draft) Return(node NodeID, reason Reason) bool {
	s := d.s
	if node < 0 || int(node) >= len(s.Nodes) || !s.Cluster.Nodes[node].Rental {
		return false
	}
	n := &s.Nodes[node]
	used := slices.ContainsFunc(s.Devices[n.First:n.First+DeviceID(n.Count)], func(d Device) bool { return d.First != None })
	if n.Status != Up && n.Status != Cordoned || used || n.FreeCPU != int32(s.Cluster.Nodes[node].CPU)-n.OtherCPU || n.LeavingCPU > 0 {
		return false
	}
	s.turnNode(node, Away)
	d.emit(Change{Job: None, Run: None, Device: None, Node: node, Verb: Return, Reason: reason})
	return true
}

// turnNode changes a node's status as part of a draft.
func (s *State) turnNode(node NodeID, status NodeStatus) {
	must("node", nodeTable[:], s.Nodes[node].Status, status)
	s.touchNode(node).Status = status
	s.room.recount(s, node)
}
