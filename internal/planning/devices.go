package planning

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Known reports whether it is known what a device of a cluster's model computes.
func Known(model string) bool {
	_, why := shape.Like(model, 0, shape.Half)
	return why == ""
}

// DevicesOf are those of a cluster, as a model's profile sees them: of a transformer by its
// shape what its passes' precision says, of measured layers how fast they are against the first
// of the cluster, on which the layers are taken to be measured. Racks count where there are several, and one of
// them has a limit to the others. The nodes of a site come one after the other; hosts are these nodes as the
// cluster has them.
func DevicesOf(c *cluster.Cluster, sites *spec.Sites, m *parallel.Model) (d *parallel.Devices, hosts []*cluster.Node, wrong *objection.Objection) {
	p, shaped := m.Profile.(*shape.Profile)
	d = &parallel.Devices{}
	for _, model := range c.Models {
		kind := parallel.Device{Name: model.Name, Memory: model.Memory, TFlops: model.Speed / c.Models[0].Speed, Reserve: shape.Reserve(model.Memory)}
		if shaped {
			like, why := shape.Like(model.Name, model.Memory, p.Precision())
			if why != "" {
				return nil, nil, &objection.Objection{Field: "--cluster", Found: string(why)}
			}
			kind = like
		}
		d.Kinds = append(d.Kinds, kind)
	}
	at := func(n *cluster.Node) (site int32) {
		if len(sites.Names) > 0 {
			site = sites.Of[n.Rack]
		}
		return site
	}
	order := make([]*cluster.Node, len(c.Nodes))
	for i := range c.Nodes {
		order[i] = &c.Nodes[i]
	}
	slices.SortStableFunc(order, func(a, b *cluster.Node) int { return int(at(a) - at(b)) })
	for _, n := range order {
		if n.Count > 0 {
			d.Nodes, hosts = append(d.Nodes, parallel.Node{Kind: n.Model, Count: n.Count, Rack: n.Rack, Out: n.Uplink, Site: at(n)}), append(hosts, n)
		}
	}
	d.Racks = c.RackLimits()
	if len(d.Nodes) == 0 {
		return nil, nil, &objection.Objection{Field: "--cluster", Found: fmt.Sprintf("%d nodes without devices", len(c.Nodes)), Expected: "at least one device"}
	}
	d.Sites = sites.Links
	return d.Index(), hosts, nil
}

// Override puts what a user says of all links and devices in the place of what the cluster says; links
// between sites stay as they are. A reserve below 0 is what is usual for the memory.
func Override(d *parallel.Devices, bandwidth unit.Mbps, latency unit.Duration, memory, reserve unit.MiB) {
	for i := range d.Nodes {
		if bandwidth > 0 {
			d.Nodes[i].Out = bandwidth
		}
	}
	for i := range d.Kinds {
		if memory > 0 {
			d.Kinds[i].Memory, d.Kinds[i].Reserve = memory, shape.Reserve(memory)
		}
		if reserve >= 0 {
			d.Kinds[i].Reserve = reserve
		}
	}
	if latency > 0 && len(d.Sites) == 0 {
		d.Sites = [][]parallel.Link{{{}}}
	}
	for i := range d.Sites {
		if latency > 0 {
			d.Sites[i][i].Latency = latency
		}
	}
}
