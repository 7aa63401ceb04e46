package inventory

import (
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Need is what one pod asks for, in the terms of a workload.Job's worker.
type Need struct {
	CPU        unit.Milli
	HostMemory unit.MiB
	// Devices is the number of devices; 0 for work without any. Share is the part of
	// the device and below 1000 only with one device; Memory is device memory, 0 unless
	// a part is asked.
	Devices int32
	Share   unit.Milli
	Memory  unit.MiB
	// Models are the models that may serve, sorted; empty only without devices.
	Models []string
	// Resource is the extended resource, or Driver the driver, that pays; both are for
	// Fits and for people to read.
	Resource string
	Driver   string
}

// Claims looks up objects of dynamic resource allocation; nil is an unknown one.
type Claims interface {
	Claim(namespace, name string) *resourcev1.ResourceClaim
	Template(namespace, name string) *resourcev1.ResourceClaimTemplate
}

// Reader reads pods against what a cluster has. It keeps compiled selectors and is
// for one goroutine.
type Reader struct {
	rules    Rules
	machines []Machine
	offers   map[string]offer // by extended resource
	nodes    map[string][]int // by Kubernetes node: its machines
	classes  map[string]*resourcev1.DeviceClass
	extended map[string]string // extended resource: the class that serves it
	kinds    []kind
	programs map[string]cel.CompilationResult
}

// offer is what nodes have behind an extended resource.
type offer struct {
	models    []string // sorted
	fractions bool
}

// NewReader makes a Reader for these machines and device classes.
func (r Rules) NewReader(machines []Machine, classes []*resourcev1.DeviceClass) *Reader {
	rd := &Reader{rules: r, machines: machines, offers: map[string]offer{}, nodes: map[string][]int{},
		classes:  map[string]*resourcev1.DeviceClass{},
		extended: map[string]string{}, programs: map[string]cel.CompilationResult{}}
	for i := range machines {
		m := &machines[i]
		rd.nodes[m.KubeNode] = append(rd.nodes[m.KubeNode], i)
		if o := rd.offers[m.Resource]; m.Resource != "" {
			if !slices.Contains(o.models, m.Model.Name) {
				o.models = unique(append(o.models, m.Model.Name))
			}
			o.fractions = o.fractions || m.Fractions
			rd.offers[m.Resource] = o
		}
	}
	for _, c := range classes {
		rd.classes[c.Name] = c
		rd.extended[resourcev1.ResourceDeviceClassPrefix+c.Name] = c.Name
	}
	for _, c := range classes {
		if name := c.Spec.ExtendedResourceName; name != nil {
			// Of two classes for one resource Kubernetes takes the newer, then the first by name.
			if had := rd.classes[rd.extended[*name]]; had == nil || newer(c, had) {
				rd.extended[*name] = c.Name
			}
		}
	}
	rd.kinds = kindsOf(machines)
	return rd
}

func newer(a, b *resourcev1.DeviceClass) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	return a.Name < b.Name
}

// member is a container of a pod. Init containers that are no sidecars run before the
// others, not alongside them.
type member struct {
	*corev1.Container
	alongside bool
}

// containers lists a pod's containers, init containers first.
func containers(pod *corev1.Pod) []member {
	var all []member
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		all = append(all, member{c, c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways})
	}
	for i := range pod.Spec.Containers {
		all = append(all, member{&pod.Spec.Containers[i], true})
	}
	return all
}

// asked is a container's request, or its limit where the API server has not yet made
// a request of it (pod templates inside custom resources).
func asked(c *corev1.Container, name string) (resource.Quantity, bool) {
	if q, ok := c.Resources.Requests[corev1.ResourceName(name)]; ok {
		return q, true
	}
	q, ok := c.Resources.Limits[corev1.ResourceName(name)]
	return q, ok
}

// wish is devices of one kind that a pod asks for.
type wish struct {
	what   string // in words
	count  int64
	share  unit.Milli
	memory unit.MiB
	models []string
	apart  bool // a count above 1 means different devices even if these are parts
	by     payer
}

type payer struct{ resource, driver string }

// Ask reads what a pod asks for. Resources that count no devices, other than CPU and
// memory, are left to the filter.
func (r *Reader) Ask(pod *corev1.Pod, claims Claims) (Need, Problem) {
	if p := r.sane(pod); !p.None() {
		return Need{}, p
	}
	requests := podRequests(pod)
	var n Need
	var says string
	if n.CPU, says = milliCPU(requests[corev1.ResourceCPU]); says != "" {
		return Need{}, wrong("the pod's containers ask for too much CPU in all: %s", says)
	}
	if n.HostMemory, says = mebibytes(requests[corev1.ResourceMemory]); says != "" {
		return Need{}, wrong("the pod's containers ask for too much memory in all: %s", says)
	}
	var wishes []wish
	for _, name := range sortedNames(requests) {
		count, says := whole(requests[corev1.ResourceName(name)])
		if _, counts := r.rules.device(name); !counts && r.extended[name] == "" || count == 0 && says == "" {
			continue
		}
		if says != "" {
			return Need{}, wrong("the pod's containers ask for too many %s in all: %s", name, says)
		}
		w, p := r.resource(pod, name, count)
		if !p.None() {
			return Need{}, p
		}
		wishes = append(wishes, w...)
	}
	more, p := r.claimed(pod, claims)
	if !p.None() {
		return Need{}, p
	}
	if p := n.add(append(wishes, more...)); !p.None() {
		return Need{}, p
	}
	return n, Problem{}
}

// podRequests is what Kubernetes counts for a pod: containers and sidecars added
// up, init containers at their most, pod-level requests and overhead.
func podRequests(pod *corev1.Pod) corev1.ResourceList {
	return podresource.PodRequests(withRequests(pod), podresource.PodResourcesOptions{})
}

// withRequests is the pod with a request for every limit that has none.
func withRequests(pod *corev1.Pod) *corev1.Pod {
	lacking := func(c member) bool {
		for name := range c.Resources.Limits {
			if _, ok := c.Resources.Requests[name]; !ok {
				return true
			}
		}
		return false
	}
	if !slices.ContainsFunc(containers(pod), lacking) {
		return pod
	}
	pod = pod.DeepCopy()
	for _, c := range containers(pod) {
		if c.Resources.Requests == nil {
			c.Resources.Requests = corev1.ResourceList{}
		}
		for name, q := range c.Resources.Limits {
			if _, ok := c.Resources.Requests[name]; !ok {
				c.Resources.Requests[name] = q
			}
		}
	}
	return pod
}

// sane refuses quantities that no cluster can mean, one by one, so that sums of the
// others stay within bounds.
func (r *Reader) sane(pod *corev1.Pod) Problem {
	check := func(where string, list corev1.ResourceList) Problem {
		for _, name := range sortedNames(list) {
			q := list[corev1.ResourceName(name)]
			if says := r.expected(name, q); says != "" {
				return wrong("%s: %s is %s: %s", where, name, q.String(), says)
			}
		}
		return Problem{}
	}
	for _, c := range containers(pod) {
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			if p := check("container "+c.Name, list); !p.None() {
				return p
			}
		}
	}
	if pod.Spec.Resources != nil {
		if p := check("the pod's resources", pod.Spec.Resources.Requests); !p.None() {
			return p
		}
	}
	if asksFractions(pod) {
		for _, c := range containers(pod) {
			if _, p := r.rules.container(c.Container); !p.None() {
				return p
			}
		}
	}
	return check("the pod's overhead", pod.Spec.Overhead)
}

func (r *Reader) expected(name string, q resource.Quantity) (says string) {
	_, counts := r.rules.device(name)
	switch {
	case name == string(corev1.ResourceCPU):
		_, says = milliCPU(q)
	case name == string(corev1.ResourceMemory):
		_, says = mebibytes(q)
	case counts || r.extended[name] != "":
		_, says = whole(q)
	case q.Sign() < 0:
		says = "expected 0 or more"
	}
	return says
}

func sortedNames(list corev1.ResourceList) []string {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// resource is what a count of an extended resource means: devices of the models that
// nodes have behind it, a fraction where HAMi serves it, or a claim where a device
// class does.
func (r *Reader) resource(pod *corev1.Pod, name string, count int64) ([]wish, Problem) {
	o := r.offers[name]
	if name == nvidiaGPU && (o.fractions || asksFractions(pod)) {
		return r.fractions(pod)
	}
	if class := r.extended[name]; class != "" && len(o.models) == 0 {
		return r.request(name, class, nil, count, nil)
	}
	if len(o.models) == 0 {
		return nil, later("no node offers %s", name)
	}
	w := wish{what: name, count: count, share: unit.Whole, models: o.models, by: payer{resource: name}}
	return []wish{w}, Problem{}
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// add joins all that a pod asks of devices into one number of devices of one set of
// models, which is all a worker of a job can have.
func (n *Need) add(wishes []wish) Problem {
	wishes = slices.DeleteFunc(wishes, func(w wish) bool { return w.count == 0 })
	n.Share = unit.Whole
	if len(wishes) == 0 {
		return Problem{}
	}
	n.Models, n.Resource, n.Driver = slices.Clone(wishes[0].models), wishes[0].by.resource, wishes[0].by.driver
	var count int64
	var share unit.Milli
	var memory, most unit.MiB
	oneDevice := true
	for i, w := range wishes {
		if i > 0 {
			n.Models = slices.DeleteFunc(n.Models, func(m string) bool { return !slices.Contains(w.models, m) })
		}
		if len(n.Models) == 0 || w.by != wishes[0].by {
			return wrong("the pod asks for %s and for %s: expected one kind of device per pod", wishes[0].what, w.what)
		}
		if w.count > mostDevices || count+w.count > mostDevices {
			return wrong("the pod asks for %d and more devices: expected at most 10,000", max(w.count, count))
		}
		count += w.count
		share += unit.Milli(w.count) * w.share
		memory += unit.MiB(w.count) * w.memory
		most = max(most, w.memory)
		oneDevice = oneDevice && w.share < unit.Whole && (w.count == 1 || !w.apart)
	}
	if memory > mostMemory {
		return wrong("the pod asks for %v of device memory: expected at most %v", memory, mostMemory)
	}
	if oneDevice && share <= unit.Whole {
		n.Devices, n.Share, n.Memory = 1, share, memory
		return Problem{}
	}
	// Parts of several devices are more than a worker can say: it gets the devices whole.
	n.Devices, n.Memory = int32(count), most
	return Problem{}
}

// Fits says in words why machine m cannot serve a need whose model it has; empty if
// it can. Two nodes may offer one model in two ways (a resource, a driver, whole or
// in fractions), which a model's name does not tell apart.
func (n *Need) Fits(m *Machine) string {
	switch {
	case m.Out != "":
		return m.Out
	case n.Devices == 0:
		return ""
	case n.Resource != "" && m.Resource != n.Resource:
		return "its devices are not offered as " + n.Resource
	case n.Driver != "" && m.Driver != n.Driver:
		return "its devices are not offered by the driver " + n.Driver
	case !slices.Contains(n.Models, m.Model.Name):
		return "its devices are " + m.Model.Name + ", not " + strings.Join(n.Models, " or ")
	case n.Share < unit.Whole && !m.Fractions:
		return "its devices are given out whole"
	}
	return ""
}
