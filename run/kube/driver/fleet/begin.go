package fleet

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/inventory"
	"github.com/musterdl/muster/run/kube/stored"
)

// ClusterOf is the cluster that there is, its nodes and models in the order in which
// they were known before.
func (fl *Fleet) ClusterOf(r *stored.Rest) (*cluster.Cluster, error) {
	fresh, err := inventory.Cluster(fl.machines, inventory.Order(r.Nodes, fl.machines))
	if err != nil {
		return nil, fmt.Errorf("reading the nodes: %w", err)
	}
	cl := &cluster.Cluster{Name: fresh.Name, Racks: fresh.Racks, Nodes: fresh.Nodes, Devices: fresh.Devices}
	for _, name := range r.Models {
		m := cluster.Model{Name: name, Speed: 1}
		if id, ok := fresh.ModelID(name); ok {
			m = fresh.Models[id]
		}
		cl.AddModel(m)
	}
	cl.AddModel(cluster.Model{Name: "cpu", Speed: 1}) // also where there is no node yet
	for i := range cl.Nodes {
		cl.Nodes[i].Model = cl.AddModel(fresh.Models[cl.Nodes[i].Model])
	}
	if len(cl.Racks) == 0 {
		cl.AddRack(cluster.Rack{Name: "none"})
	}
	return cl, nil
}

// Replace puts the grants of a run where its record's placement says that they are.
func (fl *Fleet) Replace(r *stored.Run, places []api.Place, perWorker int32) bool {
	at := 0
	for _, p := range places {
		id, known := fl.places.ids[p.Node]
		grants := int(p.Workers * perWorker)
		if !known || at+grants > len(r.Grants) || len(p.Devices) > 0 && len(p.Devices) != grants {
			return false
		}
		for i := range grants {
			g := &r.Grants[at+i].Grant
			g.Node = id
			if len(p.Devices) > 0 {
				g.Device = plan.DeviceID(fl.places.cluster.Nodes[id].First + p.Devices[i])
			}
		}
		at += grants
	}
	return at == len(r.Grants)
}

// Remember takes in what the engine was told of nodes.
func (fl *Fleet) Remember(out []plan.NodeID, s *plan.State) {
	for id := range s.Nodes {
		fl.places.told[id] = standing{out: slices.Contains(out, plan.NodeID(id)),
			use: engine.Use{CPU: unit.Milli(s.Nodes[id].OtherCPU), Memory: unit.MiB(s.Nodes[id].OtherHost), Devices: elsewhere(s, plan.NodeID(id))}}
		fl.places.joined[id].gone = s.Nodes[id].Status == plan.Down
	}
}

func elsewhere(s *plan.State, id plan.NodeID) (n int32) {
	first := s.Nodes[id].First
	for d := first; d < first+plan.DeviceID(s.Nodes[id].Count); d++ {
		if s.Devices[d].Status == plan.Elsewhere {
			n++
		}
	}
	return n
}

// PlaceOf is one worker on a node of Kubernetes, on devices by their index there.
func (fl *Fleet) PlaceOf(s *plan.State, node string, on []int32, devices int32) (engine.Place, bool) {
	for i := range fl.machines {
		m := &fl.machines[i]
		id, known := fl.places.ids[m.Name]
		if !known || m.KubeNode != node || int32(m.Count) < devices {
			continue
		}
		p := engine.Place{Node: id, Workers: 1}
		for _, d := range on {
			if d < 0 || d >= s.Nodes[id].Count {
				return p, false
			}
			p.On = append(p.On, s.Nodes[id].First+plan.DeviceID(d))
		}
		return p, int32(len(p.On)) == devices
	}
	return engine.Place{}, false
}
