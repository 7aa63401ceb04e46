package calendar

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// node is what a node has free, and what it will get back and when.
type node struct {
	up       bool // takes runs
	back     bool // does, or will when a window that has begun is over
	model    int32
	memory   int32 // MiB of each device
	whole    int32 // wholly free devices
	cpu      int32
	host     int32
	releases []release // by time; at Never what nobody knows the end of
}

// release is what a node gets back at an instant.
type release struct {
	at     unit.Time
	full   int32 // devices of which nothing is free before
	partly int32 // devices that are partly free before: shares may still be taken of them
	cpu    int32
	host   int32
}

// left marks a run that is stopping: what it holds counts as free already.
const left = unit.Time(math.MinInt64)

// Look reads what is free and what runs, each run with its expected end: Never if
// unknown; one in the past counts as the next instant. It is called before a
// decision asks anything, with nothing held, and again whenever runs were stopped or
// a draft rolled back; for runs that were started Started is enough. What ends says
// is asked once for every run.
func (c *Calendar) Look(v plan.View, ends func(run plan.RunID) unit.Time) {
	c.v, c.now, c.indexed = v, v.Now(), false
	for len(c.nodes) < v.Nodes() {
		c.nodes = append(c.nodes, node{})
	}
	for id := range plan.NodeID(v.Nodes()) {
		n, of := &c.nodes[id], v.Node(id)
		up := of.Status == plan.Up
		*n = node{up: up, back: up, model: of.Model, cpu: of.FreeCPU, host: of.FreeHost, releases: n.releases[:0]}
		if of.Count > 0 {
			n.memory = v.Device(of.First).Memory
		}
	}
	for _, w := range c.windows {
		if v.Node(w.Node).Status == plan.Cordoned && w.Open {
			c.nodes[w.Node].back = true
		}
	}
	c.ends = c.ends[:0]
	for id := range plan.RunID(v.RunSlots()) {
		c.ends = append(c.ends, left)
		if status := v.Run(id).Status; status != plan.Gone && status != plan.Stopping {
			c.ends[id] = max(ends(id), c.now+1)
			c.cores(id)
		}
	}
	for id := range plan.NodeID(v.Nodes()) {
		c.devices(id)
		c.nodes[id].sort()
	}
}

// Started tells of a run that was promised since the last Look.
func (c *Calendar) Started(run plan.RunID, end unit.Time) {
	for int(run) >= len(c.ends) {
		c.ends = append(c.ends, left)
	}
	c.ends[run] = max(end, c.now+1)
	last := plan.NodeID(plan.None)
	c.v.GrantsOf(run, func(g plan.Grant) {
		if g.Node == last {
			return
		}
		last = g.Node
		of, n := c.v.Node(g.Node), &c.nodes[g.Node]
		n.cpu, n.host, n.whole = of.FreeCPU, of.FreeHost, 0
		for i := range n.releases {
			n.releases[i].full, n.releases[i].partly = 0, 0
		}
		c.devices(g.Node)
	})
	c.cores(run)
	c.v.GrantsOf(run, func(g plan.Grant) { c.nodes[g.Node].sort() })
}

// cores notes when a run gives its cores and its host memory back.
func (c *Calendar) cores(run plan.RunID) {
	at := c.ends[run]
	c.v.GrantsOf(run, func(g plan.Grant) {
		if g.CPU > 0 || g.Host > 0 {
			n := &c.nodes[g.Node]
			n.releases = append(n.releases, release{at: at, cpu: g.CPU, host: g.Host})
		}
	})
}

// devices notes which devices of a node are wholly free and when the others will be:
// when the last of the runs on it ends. One that is cut or lost never is.
func (c *Calendar) devices(id plan.NodeID) {
	n, of := &c.nodes[id], c.v.Node(id)
	for d := of.First; d < of.First+plan.DeviceID(of.Count); d++ {
		dev := c.v.Device(d)
		if dev.Status.Out() || dev.Geometry != 0 {
			continue
		}
		at := left
		c.v.GrantsOn(d, func(g plan.Grant) { at = max(at, c.ends[g.Run]) })
		switch {
		case dev.Whole():
			n.whole++
		case dev.Free > 0:
			n.releases = append(n.releases, release{at: at, partly: 1})
		default:
			n.releases = append(n.releases, release{at: at, full: 1})
		}
	}
}

// sort orders the releases and adds up those of one instant.
func (n *node) sort() {
	slices.SortFunc(n.releases, func(a, b release) int { return cmp.Compare(a.at, b.at) })
	kept := n.releases[:0]
	for _, r := range n.releases {
		if k := len(kept) - 1; k >= 0 && kept[k].at == r.at {
			kept[k].full += r.full
			kept[k].partly += r.partly
			kept[k].cpu += r.cpu
			kept[k].host += r.host
			continue
		}
		kept = append(kept, r)
	}
	n.releases = kept
}
