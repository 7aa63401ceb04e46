// Package fleet is the nodes of a Kubernetes cluster as the driver knows them: which machines
// they are for the engine, what is used on them by whom the engine did not place, and which
// of them pods may go to. It tells the engine what changes, and knows no gangs.
package fleet

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/filter"
	"github.com/musterdl/muster/run/kube/inventory"
)

// Config is what a Fleet and its Sets work with.
type Config struct {
	Rules inventory.Rules
	// Filter checks the constraints of Kubernetes; nil checks none.
	Filter *filter.Host
	Now    func() unit.Time
	Log    *slog.Logger
	// Report tells the engine; Fail says why the state has to be put together anew.
	Report func(engine.Event)
	Fail   func(why string)
}

// Fleet is the nodes that there are, what is on them, and what the engine was told of them.
type Fleet struct {
	config  *Config
	nodes   map[string]*corev1.Node
	slices  map[string]*resourcev1.ResourceSlice
	classes map[string]*resourcev1.DeviceClass
	claims  claims
	on      map[string]map[types.UID]*corev1.Pod // by node: pods that are bound there and have not ended

	machines  []inventory.Machine
	byMachine map[string]int
	reader    *inventory.Reader
	unread    map[string]bool // nodes that cannot be read, as was logged
	places    places

	stale bool            // nodes have changed since they were read
	dirty map[string]bool // nodes of which others' use may have changed
}

// New returns a Fleet without nodes.
func New(config *Config) *Fleet {
	return &Fleet{config: config, nodes: map[string]*corev1.Node{}, slices: map[string]*resourcev1.ResourceSlice{},
		classes: map[string]*resourcev1.DeviceClass{}, on: map[string]map[types.UID]*corev1.Pod{}, byMachine: map[string]int{},
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

// TakeNode takes a node in, and reports whether anything about it is new that matters.
func (fl *Fleet) TakeNode(n *corev1.Node, gone bool) bool {
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
	fl.Touch(n.Name)
	return true
}

// TakeSlice takes a slice of devices in.
func (fl *Fleet) TakeSlice(s *resourcev1.ResourceSlice, gone bool) {
	put(fl.slices, s.Name, s, gone)
	fl.stale = true
}

// TakeClass takes a class of devices in.
func (fl *Fleet) TakeClass(d *resourcev1.DeviceClass, gone bool) {
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
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func ready(n *corev1.Node) corev1.ConditionStatus {
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status
		}
	}
	return corev1.ConditionUnknown
}

// Survey reads all nodes anew.
func (fl *Fleet) Survey() {
	nodes, slices, classes := inOrder(fl.nodes), inOrder(fl.slices), inOrder(fl.classes)
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

// TellNodes reads the nodes anew and tells the engine what became of them; more says that
// there are new ones.
func (fl *Fleet) TellNodes() (more bool) {
	fl.Survey()
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
			fl.config.Fail("there are devices of a new model: " + m.Model.Name)
		}
		fl.Touch(m.KubeNode)
	}
	for _, name := range slices.Sorted(maps.Keys(fl.places.ids)) {
		if id := fl.places.ids[name]; !there[name] && !fl.places.joined[id].gone {
			fl.places.joined[id].gone = true
			fl.config.Report(engine.Event{Kind: engine.NodeDown, Node: id})
		}
	}
	return fl.join(fresh)
}

// stands tells the engine whether a node takes work.
func (fl *Fleet) stands(id plan.NodeID, m *inventory.Machine) {
	was, at := &fl.places.told[id], &fl.places.joined[id]
	if at.gone {
		at.gone, was.out = false, false
		fl.config.Report(engine.Event{Kind: engine.NodeUp, Node: id})
	}
	if int32(m.Count) > at.devices {
		fl.config.Fail("node " + m.Name + " has more devices than before")
	}
	if out := m.Out != ""; out != was.out {
		was.out = out
		kind := engine.Uncordon
		if out {
			kind = engine.Cordon
		}
		fl.config.Report(engine.Event{Kind: kind, Node: id, By: "kubernetes"})
	}
}

// join appends machines to the engine's cluster.
func (fl *Fleet) join(fresh []inventory.Machine) (more bool) {
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
		fl.config.Fail(err.Error())
		return false
	}
	fl.Adopt(sum)
	fl.config.Report(engine.Event{Kind: engine.Joined, Outside: engine.Outside{Nodes: nodes}})
	for i := range fresh {
		fl.stands(fl.places.ids[fresh[i].Name], &fresh[i])
	}
	return true
}

// Adopt takes the engine's cluster in; nodes that are known stay as they are.
func (fl *Fleet) Adopt(cl *cluster.Cluster) {
	for id := len(fl.places.told); id < len(cl.Nodes); id++ {
		n := &cl.Nodes[id]
		fl.places.ids[n.Name] = plan.NodeID(id)
		fl.places.told = append(fl.places.told, standing{})
		fl.places.joined = append(fl.places.joined, joined{cpu: n.CPU, memory: n.Memory, devices: n.Count})
	}
	fl.places.cluster = cl
}

// TellUse tells the engine what is used on nodes by pods that it did not place, and
// what they can allocate less than when they joined.
func (fl *Fleet) TellUse(placed func(*corev1.Pod) bool) {
	if len(fl.dirty) == 0 || fl.places.cluster == nil {
		return
	}
	of := map[string][]int{}
	for i := range fl.machines {
		if fl.dirty[fl.machines[i].KubeNode] {
			of[fl.machines[i].KubeNode] = append(of[fl.machines[i].KubeNode], i)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fl.dirty)) {
		var others []*corev1.Pod
		for _, p := range fl.On(name) {
			if !placed(p) {
				others = append(others, p)
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
				fl.config.Report(engine.Event{Kind: engine.Occupied, Node: id, Outside: engine.Outside{Use: &use}})
			}
		}
	}
	clear(fl.dirty)
}

// TakePod keeps the list of pods that are on nodes. before is the pod as it was, nil where it
// is new; over says that it occupies nothing any more.
func (fl *Fleet) TakePod(p, before *corev1.Pod, over bool) {
	node := p.Spec.NodeName
	if node == "" && before != nil {
		node = before.Spec.NodeName
	}
	if node == "" {
		return
	}
	there := fl.on[node]
	_, was := there[p.UID]
	if over == was {
		fl.Touch(node)
	}
	if there == nil {
		there = map[types.UID]*corev1.Pod{}
		fl.on[node] = there
	}
	put(there, p.UID, p, over)
}

// On are the pods on a node that have not ended, in the order of their ids.
func (fl *Fleet) On(node string) []*corev1.Pod { return inOrder(fl.on[node]) }

// inOrder are the values of a map by their keys.
func inOrder[K cmp.Ordered, V any](m map[K]V) []V {
	list := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}

// Doubt has the nodes be read again.
func (fl *Fleet) Doubt() { fl.stale = true }

// Touch has what others use on a node be looked at again.
func (fl *Fleet) Touch(node string) { fl.dirty[node] = true }

// Closed are the nodes that were closed because Kubernetes had closed them.
func (fl *Fleet) Closed() (list []plan.NodeID) {
	for id := range fl.places.told {
		if fl.places.told[id].out {
			list = append(list, plan.NodeID(id))
		}
	}
	return list
}

// KubeNode is the node of Kubernetes that a machine is on.
func (fl *Fleet) KubeNode(id plan.NodeID) string {
	if m := fl.Machine(id); m != nil {
		return m.KubeNode
	}
	name, _, _ := strings.Cut(fl.places.cluster.Nodes[id].Name, "/")
	return name
}

// Machine is what a node of the engine is in Kubernetes, nil where it is gone.
func (fl *Fleet) Machine(id plan.NodeID) *inventory.Machine {
	name := fl.places.cluster.Nodes[id].Name
	if i, ok := fl.byMachine[name]; ok {
		return &fl.machines[i]
	}
	return nil
}

// Shut reports whether a node of Kubernetes is out of service or gone.
func (fl *Fleet) Shut(node string) bool {
	i := slices.IndexFunc(fl.machines, func(m inventory.Machine) bool { return m.KubeNode == node })
	return i < 0 || fl.machines[i].Out != ""
}

// Out reports whether a node of the engine is out of service or gone.
func (fl *Fleet) Out(id plan.NodeID) bool {
	m := fl.Machine(id)
	return m == nil || m.Out != ""
}

// Cluster is the engine's, nil before Adopt.
func (fl *Fleet) Cluster() *cluster.Cluster { return fl.places.cluster }

// Nodes is how many nodes the engine was told of.
func (fl *Fleet) Nodes() int { return len(fl.places.told) }

// Known reports whether the nodes have been read.
func (fl *Fleet) Known() bool { return fl.reader != nil }

// Stale reports whether nodes have changed since they were read.
func (fl *Fleet) Stale() bool { return fl.stale }

// Ask is what a pod asks for.
func (fl *Fleet) Ask(p *corev1.Pod) (inventory.Need, inventory.Problem) {
	return fl.reader.Ask(p, fl.claims)
}

// Occupied is what pods occupy of the devices of a machine.
func (fl *Fleet) Occupied(pods []*corev1.Pod, machine string) int {
	used := fl.reader.Occupied(pods, fl.claims)[machine]
	return int(used.Somewhere) + len(used.Held)
}

// TakeClaim takes in a claim that pods ask for devices through.
func (fl *Fleet) TakeClaim(c *resourcev1.ResourceClaim, gone bool) {
	put(fl.claims.claims, nameOf(c), c, gone)
}

// TakeTemplate takes in a template of claims.
func (fl *Fleet) TakeTemplate(t *resourcev1.ResourceClaimTemplate, gone bool) {
	put(fl.claims.templates, nameOf(t), t, gone)
}

func put[K comparable, V any](m map[K]V, k K, v V, gone bool) {
	if gone {
		delete(m, k)
		return
	}
	m[k] = v
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
