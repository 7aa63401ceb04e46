package driver

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/inventory"
	"github.com/musterdl/muster/run/kube/stored"
)

// fleet is the nodes that there are, what is on them, and what the engine was told of them.
// It knows no gangs.
type fleet struct {
	config  *Config
	box     *outbox
	nodes   map[string]*corev1.Node
	slices  map[string]*resourcev1.ResourceSlice
	classes map[string]*resourcev1.DeviceClass
	claims  claims
	on      map[string]map[types.UID]*member // by node: pods that are bound there and have not ended

	machines  []inventory.Machine
	byMachine map[string]int
	reader    *inventory.Reader
	unread    map[string]bool // nodes that cannot be read, as was logged
	places    places

	stale bool            // nodes have changed since they were read
	dirty map[string]bool // nodes of which others' use may have changed
}

func newFleet(config *Config, box *outbox) *fleet {
	return &fleet{config: config, box: box, nodes: map[string]*corev1.Node{}, slices: map[string]*resourcev1.ResourceSlice{},
		classes: map[string]*resourcev1.DeviceClass{}, on: map[string]map[types.UID]*member{}, byMachine: map[string]int{},
		claims: claims{claims: map[types.NamespacedName]*resourcev1.ResourceClaim{}, templates: map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{}},
		unread: map[string]bool{}, places: places{ids: map[string]plan.NodeID{}}, dirty: map[string]bool{}}
}

// places are the nodes of the engine's cluster.
type places struct {
	cluster *cluster.Cluster
	ids     map[string]plan.NodeID // by machine
	told    []standing             // by node: what the engine was told last
	joined  []joined               // by node
}

type standing struct {
	out bool
	use engine.Use
}

type joined struct {
	cpu     unit.Milli
	memory  unit.MiB
	devices int32
	gone    bool
}

// claims are the objects that pods ask for devices through.
type claims struct {
	claims    map[types.NamespacedName]*resourcev1.ResourceClaim
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
}

// Claim is the claim of a name, nil where there is none.
func (c claims) Claim(namespace, name string) *resourcev1.ResourceClaim {
	return c.claims[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Template is the template of a name, nil where there is none.
func (c claims) Template(namespace, name string) *resourcev1.ResourceClaimTemplate {
	return c.templates[types.NamespacedName{Namespace: namespace, Name: name}]
}

// takeNode takes a node in, and reports whether anything about it is new that matters.
func (fl *fleet) takeNode(n *corev1.Node, gone bool) bool {
	was := fl.nodes[n.Name]
	put(fl.nodes, n.Name, n, gone)
	if !gone && was != nil && SameNode(was, n) {
		return false // a heartbeat
	}
	if f := fl.config.Filter; f != nil {
		if gone {
			f.DeleteNode(n.Name)
		} else {
			f.SetNode(n)
		}
	}
	fl.stale = true
	fl.touch(n.Name)
	return true
}

func (fl *fleet) takeSlice(s *resourcev1.ResourceSlice, gone bool) {
	put(fl.slices, s.Name, s, gone)
	fl.stale = true
}

func (fl *fleet) takeClass(d *resourcev1.DeviceClass, gone bool) {
	put(fl.classes, d.Name, d, gone)
	fl.stale = true
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
func (fl *fleet) survey() {
	nodes := make([]*corev1.Node, 0, len(fl.nodes))
	for _, name := range sortedKeys(fl.nodes) {
		nodes = append(nodes, fl.nodes[name])
	}
	slices := make([]*resourcev1.ResourceSlice, 0, len(fl.slices))
	for _, name := range sortedKeys(fl.slices) {
		slices = append(slices, fl.slices[name])
	}
	classes := make([]*resourcev1.DeviceClass, 0, len(fl.classes))
	for _, name := range sortedKeys(fl.classes) {
		classes = append(classes, fl.classes[name])
	}
	machines, problems := fl.config.Rules.Machines(nodes, slices)
	for _, p := range problems {
		if !fl.unread[p.Text] {
			fl.unread[p.Text] = true
			fl.config.Log.Warn("a node cannot be read", "problem", p.Text)
		}
	}
	fl.machines = machines
	clear(fl.byMachine)
	for i := range machines {
		fl.byMachine[machines[i].Name] = i
	}
	fl.reader = fl.config.Rules.NewReader(machines, classes)
	fl.stale = false
}

// tellNodes reads the nodes anew and tells the engine what became of them; more says that
// there are new ones.
func (fl *fleet) tellNodes() (more bool) {
	fl.survey()
	if fl.places.cluster == nil {
		return false // Begin has not been called
	}
	there := map[string]bool{}
	var fresh []inventory.Machine
	for i := range fl.machines {
		m := &fl.machines[i]
		there[m.Name] = true
		if id, known := fl.places.ids[m.Name]; known {
			fl.stands(id, m)
		} else if _, known := fl.places.cluster.ModelID(m.Model.Name); known {
			fresh = append(fresh, *m)
		} else {
			fl.box.fail("there are devices of a new model: " + m.Model.Name)
		}
		fl.touch(m.KubeNode)
	}
	for _, name := range sortedKeys(fl.places.ids) {
		if id := fl.places.ids[name]; !there[name] && !fl.places.joined[id].gone {
			fl.places.joined[id].gone = true
			fl.box.report(engine.Event{Kind: engine.NodeDown, Node: id})
		}
	}
	return fl.join(fresh)
}

// stands tells the engine whether a node takes work.
func (fl *fleet) stands(id plan.NodeID, m *inventory.Machine) {
	was, at := &fl.places.told[id], &fl.places.joined[id]
	if at.gone {
		at.gone, was.out = false, false
		fl.box.report(engine.Event{Kind: engine.NodeUp, Node: id})
	}
	if int32(m.Count) > at.devices {
		fl.box.fail("node " + m.Name + " has more devices than before")
	}
	if out := m.Out != ""; out != was.out {
		was.out = out
		kind := engine.Uncordon
		if out {
			kind = engine.Cordon
		}
		fl.box.report(engine.Event{Kind: kind, Node: id, By: "kubernetes"})
	}
}

// join appends machines to the engine's cluster.
func (fl *fleet) join(fresh []inventory.Machine) (more bool) {
	if len(fresh) == 0 {
		return false
	}
	nodes, err := inventory.Cluster(fresh, nil)
	if err != nil {
		fl.config.Log.Error("nodes that joined cannot be represented", "error", err)
		return false
	}
	sum, err := fl.places.cluster.Plus(nodes)
	if err != nil {
		fl.box.fail(err.Error())
		return false
	}
	fl.adoptCluster(sum)
	fl.box.report(engine.Event{Kind: engine.Joined, Outside: engine.Outside{Nodes: nodes}})
	for i := range fresh {
		fl.stands(fl.places.ids[fresh[i].Name], &fresh[i])
	}
	return true
}

// adoptCluster takes the engine's cluster in; nodes that are known stay as they are.
func (fl *fleet) adoptCluster(cl *cluster.Cluster) {
	for id := len(fl.places.told); id < len(cl.Nodes); id++ {
		n := &cl.Nodes[id]
		fl.places.ids[n.Name] = plan.NodeID(id)
		fl.places.told = append(fl.places.told, standing{})
		fl.places.joined = append(fl.places.joined, joined{cpu: n.CPU, memory: n.Memory, devices: n.Count})
	}
	fl.places.cluster = cl
}

// settleUse tells the engine what is used on nodes by pods that it did not place, and
// what they can allocate less than when they joined.
func (fl *fleet) settleUse() {
	if len(fl.dirty) == 0 || fl.reader == nil || fl.places.cluster == nil {
		return
	}
	of := map[string][]int{}
	for i := range fl.machines {
		if fl.dirty[fl.machines[i].KubeNode] {
			of[fl.machines[i].KubeNode] = append(of[fl.machines[i].KubeNode], i)
		}
	}
	for _, name := range sortedKeys(fl.dirty) {
		var others []*corev1.Pod
		for _, uid := range sortedKeys(fl.on[name]) {
			if m := fl.on[name][uid]; !m.seated() {
				others = append(others, m.pod)
			}
		}
		used := fl.reader.Occupied(others, fl.claims)
		for _, i := range of[name] {
			m := &fl.machines[i]
			id, known := fl.places.ids[m.Name]
			if !known {
				continue
			}
			at, u := &fl.places.joined[id], used[m.Name]
			use := engine.Use{CPU: u.CPU + at.cpu - m.CPU, Memory: u.Memory + at.memory - m.Memory,
				Devices: int32(u.Somewhere) + int32(len(u.Held)) + at.devices - int32(m.Count)}
			if use != fl.places.told[id].use {
				fl.places.told[id].use = use
				fl.config.Log.Debug("others use", "node", m.Name, "cpu", use.CPU, "memory", use.Memory, "devices", use.Devices, "pods", len(others))
				fl.box.report(engine.Event{Kind: engine.Occupied, Node: id, Outside: engine.Outside{Use: &use}})
			}
		}
	}
	clear(fl.dirty)
}

// seated reports whether the engine knows that a pod is where it is.
func (m *member) seated() bool {
	return m.of != nil && m.of.run != nil && m.of.run.seatOf(m) >= 0
}

// stand keeps the list of pods that are on nodes.
func (fl *fleet) stand(m *member, p *corev1.Pod, gone bool) {
	node := p.Spec.NodeName
	if node == "" && m.pod != nil {
		node = m.pod.Spec.NodeName
	}
	if node == "" {
		return
	}
	there := fl.on[node]
	_, was := there[p.UID]
	if is := !gone && !ended(p); is != was {
		if there == nil {
			there = map[types.UID]*member{}
			fl.on[node] = there
		}
		put(there, p.UID, m, !is)
		fl.touch(node)
	}
}

// doubt has the nodes be read again.
func (fl *fleet) doubt() { fl.stale = true }

// touch has what others use on a node be looked at again.
func (fl *fleet) touch(node string) { fl.dirty[node] = true }

// closed are the nodes that were closed because Kubernetes had closed them.
func (fl *fleet) closed() (list []plan.NodeID) {
	for id := range fl.places.told {
		if fl.places.told[id].out {
			list = append(list, plan.NodeID(id))
		}
	}
	return list
}

// placement is where a job's run is, in the words of Kubernetes.
func (fl *fleet) placement(p *stored.Piece) (list []api.Place) {
	for _, r := range p.Runs {
		if r.Slot != p.Job.Run {
			continue
		}
		per := max(1, p.Shape.Devices)
		for i, g := range r.Grants {
			node := fl.kubeNode(g.Grant.Node)
			if n := len(list); n == 0 || list[n-1].Node != node {
				list = append(list, api.Place{Node: node})
			}
			at := &list[len(list)-1]
			if int32(i)%per == 0 {
				at.Workers++
			}
			if g.Grant.Device != plan.None {
				at.Devices = append(at.Devices, int32(g.Grant.Device)-fl.places.cluster.Nodes[g.Grant.Node].First)
			}
		}
	}
	return list
}

// kubeNode is the node of Kubernetes that a machine is on.
func (fl *fleet) kubeNode(id plan.NodeID) string {
	if m := fl.machine(id); m != nil {
		return m.KubeNode
	}
	name, _, _ := strings.Cut(fl.places.cluster.Nodes[id].Name, "/")
	return name
}

func (fl *fleet) machine(id plan.NodeID) *inventory.Machine {
	name := fl.places.cluster.Nodes[id].Name
	if i, ok := fl.byMachine[name]; ok {
		return &fl.machines[i]
	}
	return nil
}

// shut reports whether a node of Kubernetes is out of service or gone.
func (fl *fleet) shut(node string) bool {
	for i := range fl.machines {
		if fl.machines[i].KubeNode == node {
			return fl.machines[i].Out != ""
		}
	}
	return true
}

// out reports whether the node of a seat is out of service or gone.
func (fl *fleet) out(w *seat) bool {
	m := fl.machine(w.machine)
	return m == nil || m.Out != ""
}
