package plan

// Hold is room on a node that is kept from a placement which is being tried: so many
// wholly free devices, thousandths of a core and MiB of host memory.
type Hold struct {
	Node    NodeID
	Devices int32
	CPU     int32
	Host    int32
	// Shared closes the devices that are partly free as well.
	Shared bool
}

// heldBack is a Hold with what it found to hold.
type heldBack struct {
	Hold
	devices []DeviceID
	// What was on the node before and since: with nothing else done to it, Unhold leaves it
	// as it was, and caches may go on with what they know of it.
	before, since int64
}

// Hold takes room out of the index of what is free until Unhold, so that no placer
// finds it and no Start takes it: the highest wholly free devices of each node, and
// no more than there is. A mark set before must not be rolled back to in between.
func (d *Draft) Hold(holds []Hold) {
	for _, h := range holds {
		d.held = append(d.held, d.s.keep(h))
	}
}

// keep takes what is to be held out of the room of a node.
func (s *State) keep(h Hold) heldBack {
	b := heldBack{Hold: h, before: s.Nodes[h.Node].Stamp}
	n := s.touchNode(h.Node)
	b.since = n.Stamp
	b.CPU, b.Host = max(0, min(h.CPU, n.FreeCPU)), max(0, min(h.Host, n.FreeHost))
	n.FreeCPU -= b.CPU
	n.FreeHost -= b.Host
	left := h.Devices
	for id := n.First + DeviceID(n.Count) - 1; id >= n.First; id-- {
		whole := s.Devices[id].Whole()
		if whole && left == 0 || !whole && (!h.Shared || s.Devices[id].Free == 0) {
			continue
		}
		dev := s.touchDevice(id)
		dev.held, dev.Free, dev.FreeMemory = true, 0, 0
		b.devices = append(b.devices, id)
		if whole {
			n.FreeDevices--
			left--
		}
	}
	s.room.recount(s, h.Node)
	return b
}

// Unhold gives back what is held.
func (d *Draft) Unhold() {
	s := d.s
	for _, b := range d.held {
		same := s.Nodes[b.Node].Stamp == b.since
		n := s.touchNode(b.Node)
		if same {
			n.Stamp = b.before
		}
		n.FreeCPU += b.CPU
		n.FreeHost += b.Host
		for _, id := range b.devices {
			s.touchDevice(id).held = false
			s.recompute(id)
		}
		s.room.recount(s, b.Node)
	}
	d.held = d.held[:0]
}
