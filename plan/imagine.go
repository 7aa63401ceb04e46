package plan

import "slices"

// Imagined is a copy of the room in a state, to see what would be if something were
// otherwise. Nothing of the state itself changes.
type Imagined struct {
	s   *State
	own bool // the grants are a copy, too
}

// Imagine copies nodes and devices; grants are copied before one changes, and all else is
// only read.
func (v View) Imagine() *Imagined {
	c := *v.s
	c.editing = editing{}
	c.Devices, c.Nodes = slices.Clone(c.Devices), slices.Clone(c.Nodes)
	c.room = v.s.room.copy()
	return &Imagined{s: &c}
}

// View reads the room as it is imagined.
func (m *Imagined) View() View { return m.s.View() }

// Keep takes room out that is kept for others, as Draft.Hold does.
func (m *Imagined) Keep(holds []Hold) {
	for _, h := range holds {
		m.s.keep(h)
	}
}

// End gives away what a run holds, as if it were on its way out; or takes it back.
func (m *Imagined) End(run RunID, ends bool) {
	if !m.own {
		m.s.Grants, m.own = slices.Clone(m.s.Grants), true
	}
	sign := int32(1)
	if !ends {
		sign = -1
	}
	m.s.eachNode(run, func(i int32) {
		g := &m.s.Grants[i]
		if g.freed == ends {
			return
		}
		g.freed = ends
		m.s.Nodes[g.Node].FreeCPU += sign * g.CPU
		m.s.Nodes[g.Node].FreeHost += sign * g.Host
	})
}

// Open lets all nodes take workers whose status is one of those.
func (m *Imagined) Open(statuses ...NodeStatus) {
	for id := range m.s.Nodes {
		if n := &m.s.Nodes[id]; n.Status != Up && slices.Contains(statuses, n.Status) {
			n.Status = Up
			m.s.room.recount(m.s, NodeID(id))
		}
	}
}

// Mend makes all devices whole that are cut.
func (m *Imagined) Mend() {
	for id := range m.s.Devices {
		if d := &m.s.Devices[id]; d.Geometry != 0 {
			was := d.Whole()
			d.Geometry = 0
			m.s.countWhole(d, was)
			m.s.room.recount(m.s, d.Node)
		}
	}
}

// Idle ends all that runs, and what is not ours, and makes all devices whole.
func (m *Imagined) Idle() {
	for id := range m.s.Runs {
		if m.s.Runs[id].Status != Gone {
			m.End(RunID(id), true)
		}
	}
	for id := range m.s.Nodes {
		n := &m.s.Nodes[id]
		n.FreeCPU, n.FreeHost = n.FreeCPU+n.OtherCPU, n.FreeHost+n.OtherHost
	}
	m.Mend()
}
