package view

import (
	"iter"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// NodeOf describes one node and who holds what on it.
func NodeOf(v plan.View, id plan.NodeID) Node {
	n, is, c := v.Node(id), &v.Cluster().Nodes[id], v.Cluster()
	out := Node{Name: is.Name, Rack: c.Racks[is.Rack].Name, Status: n.Status.String(),
		FreeCPU: whole(n.FreeCPU), FreeMiB: int64(n.FreeHost), Devices: make([]Device, 0, n.Count), Windows: windowsOf(v, id)}
	if int(is.Model) < len(c.Models) {
		out.Model = c.Models[is.Model].Name
	}
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		dev := v.Device(d)
		view := Device{ID: int32(d - n.First), Status: dev.Status.String(), MemoryMiB: int64(dev.Memory)}
		if !dev.Status.Out() {
			view.Free = whole(dev.Free)
			out.Free += view.Free
		}
		if g := c.Models[is.Model].Geometries; dev.Geometry > 0 && int(dev.Geometry) < len(g) {
			view.Geometry = g[dev.Geometry].Name
		}
		v.GrantsOn(d, func(g plan.Grant) {
			r := v.Run(g.Run)
			view.Holders = append(view.Holders, Holder{Job: v.Name(r.Job), Run: r.Status.String(), Share: whole(g.Reserve)})
		})
		out.Devices = append(out.Devices, view)
	}
	return out
}

// NodesOf describes all nodes.
func NodesOf(v plan.View) []Node {
	nodes := make([]Node, v.Nodes())
	for id := range nodes {
		nodes[id] = NodeOf(v, plan.NodeID(id))
	}
	return nodes
}

// ClusterOf sums up. Live are the jobs that have not ended, and over counts the
// others by phase.
func ClusterOf(v plan.View, strategy string, live iter.Seq[plan.JobID], over map[plan.Phase]int) Cluster {
	c := Cluster{Name: v.Cluster().Name, Strategy: strategy, At: instant(v.Now()), Nodes: map[string]int{}, Jobs: map[string]int{}, States: map[string]int{},
		Devices: CapacityOf(v)}
	for id := range plan.NodeID(v.Nodes()) {
		c.Nodes[v.Node(id).Status.String()]++
	}
	for phase, n := range over {
		c.Jobs[phase.String()], c.States[phase.String()] = n, n
	}
	for id := range plan.RunID(v.RunSlots()) { // of a job that has ended
		if r := v.Run(id); r.Status == plan.Stopping && v.Job(r.Job).Phase.Over() {
			phase := v.Job(r.Job).Phase.String()
			if c.States[phase]--; c.States[phase] == 0 {
				delete(c.States, phase)
			}
			c.States[r.Status.String()]++
		}
	}
	oldest := unit.Never
	for id := range live {
		j := v.Job(id)
		c.Jobs[j.Phase.String()]++
		c.States[v.Standing(id)]++
		switch j.Phase {
		case plan.Waiting:
			c.Queue.Waiting++
			if s := v.Shape(id); s.Devices > 0 {
				c.Queue.Devices += whole(s.Milli(s.Gang))
			}
			if j.Since < oldest {
				oldest = j.Since
				c.Queue.Oldest, c.Queue.OldestSec = v.Name(id), v.Now().Sub(j.Since).Seconds()
			}
		case plan.Held:
			c.Queue.Held++
		case plan.Blocked:
			c.Queue.Blocked++
		case plan.Backoff:
			c.Queue.Backoff++
		}
	}
	return c
}

// CapacityOf counts the devices by what they are doing.
func CapacityOf(v plan.View) Capacity {
	var granted, free, closed, lost int64
	for id := range plan.DeviceID(v.Devices()) {
		dev := v.Device(id)
		if dev.Status.Out() || v.Node(dev.Node).Status == plan.Down {
			lost += 1000
			continue
		}
		granted += 1000 - int64(dev.Free)
		if v.Node(dev.Node).Status == plan.Up {
			free += int64(dev.Free)
		} else {
			closed += int64(dev.Free)
		}
	}
	return Capacity{Total: float64(v.Devices()), Granted: whole(granted), Free: whole(free), Closed: whole(closed), Lost: whole(lost)}
}
