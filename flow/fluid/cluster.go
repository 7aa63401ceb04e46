// Package fluid is traffic as fluids: what the runs of a cluster take of its links,
// which mechanism/maxmin shares out; and a small event loop in which jobs send
// chains of coflows through one big switch.
//
// Who gets which weight is the caller's affair. Left out: packets, round-trip
// times, losses; a rate changes at once everywhere.
package fluid

import (
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// Capacities are those of a cluster's links in Mbps; one without a limit is infinite.
func Capacities(c *cluster.Cluster) []float64 {
	all := make([]float64, c.Links())
	for l := range all {
		if all[l] = float64(c.LinkBandwidth(int32(l))); all[l] == 0 {
			all[l] = math.Inf(1)
		}
	}
	return all
}

// OfRun is what a run takes of the links at full speed, in Mbps: what its workers on
// a node send over the node's uplink, and those in a rack over the rack's, where it
// spans nodes and racks. Links without a limit are left out.
func OfRun(v plan.View, run plan.RunID) []maxmin.Use {
	job := v.Run(run).Job
	var all spans
	share := float64(v.Job(job).Traffic) / float64(max(1, v.Shape(job).Devices)) // a worker has a grant per device
	v.GrantsOf(run, func(g plan.Grant) { all.add(g.Node, share) })
	return all.uses(v)
}

// OfSlots is what a run of the job would take in these slots.
func OfSlots(v plan.View, job plan.JobID, slots []plan.Slot) []maxmin.Use {
	var all spans
	for _, s := range slots {
		all.add(s.Node, float64(v.Job(job).Traffic)*float64(s.Workers))
	}
	return all.uses(v)
}

// spans is what a run sends from each of its nodes.
type spans []struct {
	node plan.NodeID
	mbps float64
}

func (s *spans) add(node plan.NodeID, mbps float64) {
	for i := len(*s) - 1; i >= 0; i-- { // mostly the last
		if (*s)[i].node == node {
			(*s)[i].mbps += mbps
			return
		}
	}
	*s = append(*s, struct {
		node plan.NodeID
		mbps float64
	}{node, mbps})
}

// uses adds up the racks, and leaves out what does not cross or has no limit.
func (s spans) uses(v plan.View) (uses []maxmin.Use) {
	if len(s) < 2 || s[0].mbps == 0 {
		return nil
	}
	c := v.Cluster()
	var racks []maxmin.Use
	for _, x := range s {
		uses = append(uses, maxmin.Use{Link: c.NodeLink(int32(x.node)), Per: x.mbps})
		link := c.RackLink(c.Nodes[x.node].Rack)
		at := slices.IndexFunc(racks, func(u maxmin.Use) bool { return u.Link == link })
		if at < 0 {
			at, racks = len(racks), append(racks, maxmin.Use{Link: link})
		}
		racks[at].Per += x.mbps
	}
	if len(racks) > 1 {
		uses = append(uses, racks...)
	}
	return slices.DeleteFunc(uses, func(u maxmin.Use) bool { return c.LinkBandwidth(u.Link) == 0 })
}
