package driver

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/inventory"
)

func (c *Core) takeNode(n *corev1.Node, gone bool) {
	was := c.nodes[n.Name]
	put(c.nodes, n.Name, n, gone)
	if !gone && was != nil && SameNode(was, n) {
		return // a heartbeat
	}
	if f := c.config.Filter; f != nil {
		if gone {
			f.DeleteNode(n.Name)
		} else {
			f.SetNode(n)
		}
	}
	c.staleNodes, c.staleSets = true, true
	c.dirtyNodes[n.Name] = true
}

// SameNode reports whether two versions of a node differ in nothing that matters here:
// most writes to a node are heartbeats.
func SameNode(a, b *corev1.Node) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && a.Spec.Unschedulable == b.Spec.Unschedulable &&
		slices.Equal(a.Spec.Taints, b.Spec.Taints) && ready(a) == ready(b) && sameAmounts(a.Status.Allocatable, b.Status.Allocatable)
}

func sameAmounts(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

func ready(n *corev1.Node) corev1.ConditionStatus {
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status
		}
	}
	return corev1.ConditionUnknown
}

// survey reads all nodes anew.
func (c *Core) survey() {
	nodes := make([]*corev1.Node, 0, len(c.nodes))
	for _, name := range sortedKeys(c.nodes) {
		nodes = append(nodes, c.nodes[name])
	}
	slices := make([]*resourcev1.ResourceSlice, 0, len(c.slices))
	for _, name := range sortedKeys(c.slices) {
		slices = append(slices, c.slices[name])
	}
	classes := make([]*resourcev1.DeviceClass, 0, len(c.classes))
	for _, name := range sortedKeys(c.classes) {
		classes = append(classes, c.classes[name])
	}
	machines, problems := c.config.Rules.Machines(nodes, slices)
	for _, p := range problems {
		if !c.notes[p.Text] {
			c.notes[p.Text] = true
			c.config.Log.Warn("a node cannot be read", "problem", p.Text)
		}
	}
	c.machines = machines
	clear(c.byMachine)
	for i := range machines {
		c.byMachine[machines[i].Name] = i
	}
	c.reader = c.config.Rules.NewReader(machines, classes)
	c.staleNodes = false
	for _, e := range c.gangs {
		if e.job == plan.None && !e.asked {
			c.stir(e) // there may be now what it asks for
		}
	}
}

// settleNodes tells the engine what became of nodes.
func (c *Core) settleNodes() {
	if !c.staleNodes {
		return
	}
	c.survey()
	if c.places.cluster == nil {
		return // Begin has not been called
	}
	there := map[string]bool{}
	var fresh []inventory.Machine
	for i := range c.machines {
		m := &c.machines[i]
		there[m.Name] = true
		if id, known := c.places.ids[m.Name]; known {
			c.stands(id, m)
		} else if _, known := c.places.cluster.ModelID(m.Model.Name); known {
			fresh = append(fresh, *m)
		} else {
			c.broken = "there are devices of a new model: " + m.Model.Name
		}
		c.dirtyNodes[m.KubeNode] = true
	}
	for _, name := range sortedKeys(c.places.ids) {
		if id := c.places.ids[name]; !there[name] && !c.places.joined[id].gone {
			c.places.joined[id].gone = true
			c.report(engine.Event{Kind: engine.NodeDown, Node: id})
		}
	}
	c.join(fresh)
}

// stands tells the engine whether a node takes work.
func (c *Core) stands(id plan.NodeID, m *inventory.Machine) {
	was, at := &c.places.told[id], &c.places.joined[id]
	if at.gone {
		at.gone, was.out = false, false
		c.report(engine.Event{Kind: engine.NodeUp, Node: id})
	}
	if int32(m.Count) > at.devices {
		c.broken = "node " + m.Name + " has more devices than before"
	}
	if out := m.Out != ""; out != was.out {
		was.out = out
		kind := engine.Uncordon
		if out {
			kind = engine.Cordon
		}
		c.report(engine.Event{Kind: kind, Node: id, By: "kubernetes"})
	}
}

// join appends machines to the engine's cluster.
func (c *Core) join(fresh []inventory.Machine) {
	if len(fresh) == 0 {
		return
	}
	more, err := inventory.Cluster(fresh, nil)
	if err != nil {
		c.config.Log.Error("nodes that joined cannot be represented", "error", err)
		return
	}
	sum, err := c.places.cluster.Plus(more)
	if err != nil {
		c.broken = err.Error()
		return
	}
	c.adoptCluster(sum)
	c.report(engine.Event{Kind: engine.Joined, Outside: engine.Outside{Nodes: more}})
	for i := range fresh {
		c.stands(c.places.ids[fresh[i].Name], &fresh[i])
	}
	for id := range c.sets.told {
		c.sets.told[id] = nil // they have more nodes to tell about
	}
}

// adoptCluster takes the engine's cluster in; nodes that are known stay as they are.
func (c *Core) adoptCluster(cl *cluster.Cluster) {
	for id := len(c.places.told); id < len(cl.Nodes); id++ {
		n := &cl.Nodes[id]
		c.places.ids[n.Name] = plan.NodeID(id)
		c.places.told = append(c.places.told, standing{})
		c.places.joined = append(c.places.joined, joined{cpu: n.CPU, memory: n.Memory, devices: n.Count})
	}
	c.places.cluster = cl
}

// settleUse tells the engine what is used on nodes by pods that it did not place, and
// what they can allocate less than when they joined.
func (c *Core) settleUse() {
	if len(c.dirtyNodes) == 0 || c.reader == nil || c.places.cluster == nil {
		return
	}
	of := map[string][]int{}
	for i := range c.machines {
		if c.dirtyNodes[c.machines[i].KubeNode] {
			of[c.machines[i].KubeNode] = append(of[c.machines[i].KubeNode], i)
		}
	}
	for _, name := range sortedKeys(c.dirtyNodes) {
		var others []*corev1.Pod
		for _, uid := range sortedKeys(c.on[name]) {
			if m := c.on[name][uid]; !c.seated(m) {
				others = append(others, m.pod)
			}
		}
		used := c.reader.Occupied(others, c.claims)
		for _, i := range of[name] {
			m := &c.machines[i]
			id, known := c.places.ids[m.Name]
			if !known {
				continue
			}
			at, u := &c.places.joined[id], used[m.Name]
			use := engine.Use{CPU: u.CPU + at.cpu - m.CPU, Memory: u.Memory + at.memory - m.Memory,
				Devices: int32(u.Somewhere) + int32(len(u.Held)) + at.devices - int32(m.Count)}
			if use != c.places.told[id].use {
				c.places.told[id].use = use
				c.config.Log.Debug("others use", "node", m.Name, "cpu", use.CPU, "memory", use.Memory, "devices", use.Devices, "pods", len(others))
				c.report(engine.Event{Kind: engine.Occupied, Node: id, Outside: engine.Outside{Use: &use}})
			}
		}
	}
	clear(c.dirtyNodes)
}

// seated reports whether the engine knows that a pod is where it is.
func (c *Core) seated(m *member) bool {
	return m.of != nil && m.of.run != nil && m.of.run.seatOf(m) >= 0
}
