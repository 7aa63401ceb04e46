package plane

import (
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// Cluster is the cluster as the journal knows it, whatever of it is lost; call it before
// Run or inside Query.
func (p *Plane) Cluster() *cluster.Cluster { return p.engine.View().Cluster() }

// devices are the events that make the devices of the state those that there are now.
// A node is known by its name, a device by its place on it: those that are no more are
// lost, and come back when they are there again; more of them join. Devices of a model
// that the journal does not know are left out.
func (p *Plane) devices() (events []engine.Event) {
	v, now := p.engine.View(), p.config.Cluster
	was := v.Cluster()
	more := &cluster.Cluster{Name: now.Name, Models: now.Models, Racks: now.Racks}
	for i := range now.Nodes {
		n := now.Nodes[i]
		model := now.Models[n.Model].Name
		id := slices.IndexFunc(was.Nodes, func(w cluster.Node) bool { return w.Name == n.Name && was.Models[w.Model].Name == model })
		_, known := was.ModelID(model)
		taken := slices.ContainsFunc(was.Nodes, func(w cluster.Node) bool { return w.Name == n.Name })
		switch count := int(n.Count); {
		case id >= 0 && n.Count <= was.Nodes[id].Count:
		case id == len(was.Nodes)-1 && id >= 0:
			more.AddNode(n, count-int(was.Nodes[id].Count))
		case id < 0 && known && !taken:
			more.AddNode(n, count)
		default:
			p.config.Log.Error("there are devices that jobs of this state directory cannot use: use another, or bring back what it was made for",
				"node", n.Name, "now", count, "model", model)
		}
	}
	lost := 0
	for id := range was.Nodes {
		w := &was.Nodes[id]
		have, first := int32(0), int32(0)
		for i := range now.Nodes {
			if n := &now.Nodes[i]; n.Name == w.Name && now.Models[n.Model].Name == was.Models[w.Model].Name {
				have, first = n.Count, n.First
			}
		}
		for k := range w.Count {
			d := plan.DeviceID(w.First + k)
			there := k < have && !slices.Contains(p.config.Absent, plan.DeviceID(first+k))
			switch is := v.Device(d).Status == plan.Lost; {
			case is && there:
				events = append(events, engine.Event{Kind: engine.DeviceUp, Device: d})
			case !there:
				if lost++; !is {
					events = append(events, engine.Event{Kind: engine.DeviceDown, Device: d})
				}
			}
		}
	}
	if len(more.Nodes) > 0 {
		events = append(events, engine.Event{Kind: engine.Joined, Outside: engine.Outside{Nodes: more}})
	}
	if len(events) > 0 || lost > 0 {
		p.config.Log.Warn("there are other devices than before: what was lost comes back when it is there again", "lost", lost, "joined", len(more.Devices))
	}
	return events
}
