package inventory

import (
	"slices"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Machines lists what the nodes have, sorted by name, with what could not be read of
// them in words.
func (r Rules) Machines(nodes []*corev1.Node, resourceSlices []*resourcev1.ResourceSlice) ([]Machine, []Problem) {
	rackLabel := r.RackLabel(nodes)
	offered, problems := r.pools(resourceSlices)
	var all []Machine
	for _, n := range nodes {
		ms, ps := r.node(n, offered[n.Name])
		for i := range ms {
			ms[i].Rack = rackOf(n, rackLabel)
		}
		all, problems = append(all, ms...), append(problems, ps...)
	}
	slices.SortFunc(all, byName)
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Text, b.Text) })
	return all, problems
}

// node lists the machines of one node: the resources of device plugins first, whole
// devices before MIG profiles, then the drivers of dynamic resource allocation. The
// first has the node's plain name.
func (r Rules) node(n *corev1.Node, offered []Machine) ([]Machine, []Problem) {
	host, problems := r.host(n)
	var ms []Machine
	for _, name := range r.deviceResources(n) {
		more, p := r.plugin(n, name)
		ms = append(ms, more...)
		if !p.None() {
			problems = append(problems, p)
		}
	}
	ms = append(ms, offered...)
	if len(ms) == 0 {
		ms = []Machine{{Model: r.named(cpuOnly, 0)}}
	}
	taken := map[string]bool{}
	for i := range ms {
		m := &ms[i]
		m.Name, m.KubeNode = n.Name, n.Name
		m.CPU, m.Memory, m.Uplink, m.Out = host.CPU, host.Memory, host.Uplink, host.Out
		if i > 0 {
			m.Name += "/" + suffix(m)
		}
		if taken[m.Name] { // two models of one resource, or of one driver
			m.Name += "/" + m.Model.Name
		}
		taken[m.Name] = true
	}
	return ms, problems
}

// suffix names a further machine of a node: "mig-1g.5gb", "gpu.nvidia.com".
func suffix(m *Machine) string {
	if m.Driver != "" {
		return m.Driver
	}
	return m.Resource[strings.LastIndex(m.Resource, "/")+1:]
}

// host reads what a node has besides devices.
func (r Rules) host(n *corev1.Node) (m Machine, problems []Problem) {
	var says string
	if m.CPU, says = milliCPU(n.Status.Allocatable[corev1.ResourceCPU]); says != "" {
		problems = append(problems, unreadable(n, corev1.ResourceCPU, says))
	}
	if m.Memory, says = hostMemory(n.Status.Allocatable[corev1.ResourceMemory]); says != "" {
		problems = append(problems, unreadable(n, corev1.ResourceMemory, says))
	}
	up, p := uplink(n)
	if !p.None() {
		problems = append(problems, p)
	}
	m.Uplink, m.Out = up, out(n)
	return m, problems
}

// hostMemory rounds down, where what pods ask is rounded up.
func hostMemory(q resource.Quantity) (unit.MiB, string) {
	if _, says := mebibytes(q); says != "" {
		return 0, says
	}
	return unit.MiB(q.Value() >> 20), ""
}

func unreadable(n *corev1.Node, name corev1.ResourceName, says string) Problem {
	q := n.Status.Allocatable[name]
	return wrong("node %s: allocatable %s is %s: %s; taken as 0", n.Name, name, q.String(), says)
}

// deviceResources are the resources of a node that count devices, in the order of
// its machines. One whose plugin is away for a moment (allocatable 0) stays, so that
// machines keep their names.
func (r *Rules) deviceResources(n *corev1.Node) []string {
	var names []string
	for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
		for name, q := range list {
			if _, ok := r.device(string(name)); ok && !q.IsZero() && !slices.Contains(names, string(name)) {
				names = append(names, string(name))
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		am, bm := strings.HasPrefix(a, nvidiaMIG), strings.HasPrefix(b, nvidiaMIG)
		if am != bm {
			return map[bool]int{true: 1, false: -1}[am]
		}
		return strings.Compare(a, b)
	})
	return names
}

// plugin lists the machines behind one extended resource: one, or one per model
// where HAMi tells the devices apart.
func (r Rules) plugin(n *corev1.Node, name string) ([]Machine, Problem) {
	d, _ := r.device(name)
	quantity := n.Status.Allocatable[corev1.ResourceName(name)]
	count, says := whole(quantity)
	model := r.model(name, d, n.Labels)
	plain := []Machine{{Model: model, Count: int(count), Resource: name}}
	if says != "" {
		return plain, unreadable(n, corev1.ResourceName(name), says)
	}
	text, registered := n.Annotations[hamiRegister]
	if name != nvidiaGPU || !registered {
		return plain, Problem{}
	}
	devices, problem := parseRegister(n.Name, text)
	if !problem.None() {
		return []Machine{{Model: model, Resource: name}}, problem
	}
	return r.registered(n, devices, count > 0), Problem{}
}

// registered lists the machines that HAMi describes: physical devices, where the
// resource counts each as often as it may be shared.
func (r Rules) registered(n *corev1.Node, devices []registration, offered bool) []Machine {
	var ms []Machine
	cordoned := strings.Split(n.Annotations[hamiCordon], ",")
	for _, d := range devices {
		if strings.TrimSpace(d.ID) == "" {
			continue
		}
		model := r.named(tidy(d.Type), d.memory())
		if model.Name == "" {
			model.Name = "nvidia-gpu"
		}
		i := slices.IndexFunc(ms, func(m Machine) bool { return m.Model.Name == model.Name })
		if i < 0 {
			i = len(ms)
			ms = append(ms, Machine{Model: model, Resource: nvidiaGPU, Fractions: true})
		}
		dev := Device{UUID: d.ID, NUMA: d.Numa, Memory: d.memory(), Slots: d.slots()}
		switch {
		case !d.Health:
			dev.Out = "the device plugin reports it unhealthy"
		case !offered:
			dev.Out = "the device plugin offers no " + nvidiaGPU
		case slices.ContainsFunc(cordoned, func(id string) bool { return strings.TrimSpace(id) == d.ID }):
			dev.Out = "the device is cordoned by " + hamiCordon
		}
		ms[i].Count++
		ms[i].Devices = append(ms[i].Devices, dev)
	}
	if len(ms) == 0 {
		ms = []Machine{{Model: cluster.Model{Name: "nvidia-gpu", Speed: 1}, Resource: nvidiaGPU}}
	}
	return ms
}
