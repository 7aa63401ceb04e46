package fit

import (
	"encoding/binary"
	"slices"

	"github.com/musterdl/muster/plan"
)

// Looks puts the nodes of a State into groups that look alike to a placer: of one model, with
// as many free cores and as much host memory, and with devices of which as much is free,
// whichever these are. What a node is worth to a shape is worked out once for its group, and
// of a group the lowest node stands for all. A node with a cut device is a group by itself,
// since which parts of it are taken counts too. Nodes change their groups as they change, so
// that a placement costs what happened since the last one and the number of groups.
type Looks struct {
	watch  plan.Watch
	of     []int32 // by node: its group, or aside
	groups []look
	alive  []int32 // the groups that have nodes
	known  map[string]int32
	key    []byte
	parts  []uint64
}

// aside is the group of a node that stands for itself for a while.
const aside = -1

// look is a group. A node that left it may still be listed, and one that came back twice.
type look struct {
	ids   []plan.NodeID // a heap, the lowest first
	count int           // nodes that are in it
	at    int           // in alive, where it has nodes
}

// mostLooks bounds the groups that are remembered, by how often there are as many as nodes.
const mostLooks = 4

// Update brings the groups up to date, and reports whether they were made anew: then what is
// known by group is void.
func (l *Looks) Update(v plan.View) (anew bool) {
	changed, all := l.watch.Changed(v)
	if all || len(l.groups) > mostLooks*v.Nodes()+mostLooks {
		l.of = make([]int32, v.Nodes())
		l.groups, l.alive, l.known = l.groups[:0], l.alive[:0], map[string]int32{}
		for id := range plan.NodeID(v.Nodes()) {
			l.of[id] = aside
			l.File(v, id)
		}
		return true
	}
	for _, id := range changed {
		l.File(v, id)
	}
	return false
}

// Groups are the groups that have nodes, in no order that means anything.
func (l *Looks) Groups() []int32 { return l.alive }

// Many is how many groups there have been: they are counted from 0.
func (l *Looks) Many() int { return len(l.groups) }

// Of is the group of a node that was not set aside.
func (l *Looks) Of(id plan.NodeID) int32 { return l.of[id] }

// First is the lowest node of a group that has some.
func (l *Looks) First(group int32) plan.NodeID {
	g := &l.groups[group]
	for l.of[g.ids[0]] != group {
		last := len(g.ids) - 1
		g.ids[0] = g.ids[last]
		g.ids = g.ids[:last]
		sink(g.ids)
	}
	return g.ids[0]
}

// SetAside takes a node out of its group until it is filed again.
func (l *Looks) SetAside(id plan.NodeID) {
	if l.of[id] == aside {
		return
	}
	g := &l.groups[l.of[id]]
	l.of[id] = aside
	if g.count--; g.count == 0 {
		last := l.alive[len(l.alive)-1]
		l.alive[g.at], l.groups[last].at = last, g.at
		l.alive, g.ids = l.alive[:len(l.alive)-1], g.ids[:0]
	}
}

// File puts a node into the group that it looks like.
func (l *Looks) File(v plan.View, id plan.NodeID) {
	l.read(v, id)
	group, found := l.known[string(l.key)]
	if !found {
		group = int32(len(l.groups))
		l.known[string(l.key)] = group
		l.groups = append(l.groups, look{})
	}
	if l.of[id] == group {
		return
	}
	l.SetAside(id)
	l.of[id] = group
	g := &l.groups[group]
	if g.count++; g.count == 1 {
		g.at = len(l.alive)
		l.alive = append(l.alive, group)
	}
	if g.ids = append(g.ids, id); len(g.ids) > 2*g.count+8 {
		l.tidy(g, group)
	} else {
		rise(g.ids)
	}
}

// tidy lists each node of a group once.
func (l *Looks) tidy(g *look, group int32) {
	g.ids = slices.DeleteFunc(g.ids, func(id plan.NodeID) bool { return l.of[id] != group })
	slices.Sort(g.ids)
	g.ids = slices.Compact(g.ids)
}

// read writes down what a node looks like.
func (l *Looks) read(v plan.View, id plan.NodeID) {
	n := v.Node(id)
	if n.Status != plan.Up {
		l.key = l.key[:0] // those that take nothing are all alike
		return
	}
	memory, cut := int32(0), int32(plan.None)
	l.parts = l.parts[:0]
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		dev := v.Device(d)
		memory = v.Device(n.First).Memory
		switch {
		case dev.Status.Out():
			l.parts = append(l.parts, 1<<63)
			continue
		case dev.Geometry != 0:
			cut = int32(id)
		}
		l.parts = append(l.parts, uint64(uint32(dev.Free))<<31|uint64(uint32(dev.FreeMemory))&(1<<31-1))
	}
	slices.Sort(l.parts)
	l.key = l.key[:0]
	for _, figure := range [...]int32{n.Model, n.FreeCPU, n.FreeHost, n.FreeDevices, memory, cut} {
		l.key = binary.LittleEndian.AppendUint32(l.key, uint32(figure))
	}
	for _, part := range l.parts {
		l.key = binary.LittleEndian.AppendUint64(l.key, part)
	}
}

// sink brings the first of a heap to where it belongs, and rise the last.
func sink(ids []plan.NodeID) {
	for i := 0; 2*i+1 < len(ids); {
		child := 2*i + 1
		if child+1 < len(ids) && ids[child+1] < ids[child] {
			child++
		}
		if ids[i] <= ids[child] {
			return
		}
		ids[i], ids[child] = ids[child], ids[i]
		i = child
	}
}

func rise(ids []plan.NodeID) {
	for i := len(ids) - 1; i > 0 && ids[i] < ids[(i-1)/2]; i = (i - 1) / 2 {
		ids[i], ids[(i-1)/2] = ids[(i-1)/2], ids[i]
	}
}
