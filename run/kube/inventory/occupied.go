package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/unit"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// Used is what pods hold of a machine.
type Used struct {
	CPU    unit.Milli
	Memory unit.MiB
	// Somewhere is the number of devices that are held where no object tells which:
	// a device plugin's choice is known to the kubelet alone.
	Somewhere int64
	// Held is what is held of devices that are known, by device.
	Held []Hold
}

// Hold is what is held of one device.
type Hold struct {
	Device int // position in the machine's devices
	Milli  unit.Milli
	Memory unit.MiB
}

// Occupied is what these pods hold on the nodes they are bound to, by machine name.
// Pods that ended hold nothing. CPU and memory count on every machine of a node.
func (r *Reader) Occupied(pods []*corev1.Pod, claims Claims) map[string]Used {
	all := map[string]Used{}
	counted := map[string]bool{} // claims, which pods may share
	for _, pod := range pods {
		machines := r.nodes[pod.Spec.NodeName]
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		requests := podresource.PodRequests(withRequests(pod), podresource.PodResourcesOptions{UseStatusResources: true})
		cpu, _ := milliCPU(requests[corev1.ResourceCPU])
		memory, _ := mebibytes(requests[corev1.ResourceMemory])
		for _, i := range machines {
			u := all[r.machines[i].Name]
			u.CPU, u.Memory = u.CPU+cpu, u.Memory+memory
			all[r.machines[i].Name] = u
		}
		r.holdResources(all, machines, pod, requests)
		r.holdClaims(all, machines, pod, claims, counted)
	}
	for name, u := range all {
		u.Held = merged(u.Held)
		all[name] = u
	}
	return all
}

// holdResources counts a pod's extended resources, at the devices of HAMi's annotation
// where it has one.
func (r *Reader) holdResources(all map[string]Used, machines []int, pod *corev1.Pod, requests corev1.ResourceList) {
	given := parseGiven(pod)
	for _, name := range sortedNames(requests) {
		count, _ := whole(requests[corev1.ResourceName(name)])
		if _, counts := r.rules.device(name); !counts || count == 0 {
			continue
		}
		first := true
		for _, i := range machines {
			m := &r.machines[i]
			if m.Resource != name {
				continue
			}
			u := all[m.Name]
			if m.Fractions && len(given) > 0 {
				u.Held = append(u.Held, r.holdsOf(m, given)...)
			} else if first {
				u.Somewhere += count
			}
			all[m.Name], first = u, false
		}
	}
}

// given is what HAMi gave of one device to one container.
type given struct {
	uuid      string
	memory    unit.MiB
	cores     int64
	alongside bool
}

// parseGiven reads the annotation of a pod that HAMi's protocol placed; parts of it
// that are not of the form are passed over.
func parseGiven(pod *corev1.Pod) []given {
	text := pod.Annotations[hamiGiven]
	if text == "" {
		return nil
	}
	members := containers(pod)
	var all []given
	for i, container := range strings.Split(text, ";") {
		for item := range strings.SplitSeq(container, ":") {
			f := strings.Split(item, ",")
			if len(f) != 4 {
				continue
			}
			memory, err1 := strconv.ParseInt(f[2], 10, 32)
			cores, err2 := strconv.ParseInt(f[3], 10, 32)
			if err1 != nil || err2 != nil || memory < 0 || cores < 0 {
				continue
			}
			all = append(all, given{f[0], unit.MiB(memory), min(cores, 100), i >= len(members) || members[i].alongside})
		}
	}
	return all
}

// holdsOf is what was given of a machine's devices: containers that run alongside
// each other add up, init containers count at their most.
func (r *Reader) holdsOf(m *Machine, all []given) []Hold {
	var holds []Hold
	for i, d := range m.Devices {
		var sum, most Hold
		for _, g := range all {
			if g.uuid != d.UUID {
				continue
			}
			milli := unit.Milli(g.cores) * 10
			if d.Slots > 0 {
				milli = max(milli, (unit.Whole+unit.Milli(d.Slots)-1)/unit.Milli(d.Slots))
			}
			if g.alongside {
				sum.Milli, sum.Memory = sum.Milli+milli, sum.Memory+g.memory
			} else {
				most.Milli, most.Memory = max(most.Milli, milli), max(most.Memory, g.memory)
			}
		}
		if h := (Hold{i, max(sum.Milli, most.Milli), max(sum.Memory, most.Memory)}); h.Milli > 0 {
			holds = append(holds, h)
		}
	}
	return holds
}

// holdClaims counts the devices that a pod's claims are allocated.
func (r *Reader) holdClaims(all map[string]Used, machines []int, pod *corev1.Pod, claims Claims, counted map[string]bool) {
	if claims == nil {
		return
	}
	for _, name := range claimNames(pod) {
		key := pod.Namespace + "/" + name
		c := claims.Claim(pod.Namespace, name)
		if c == nil || c.Status.Allocation == nil || counted[key] {
			continue
		}
		counted[key] = true
		for i := range c.Status.Allocation.Devices.Results {
			result := &c.Status.Allocation.Devices.Results[i]
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			for _, j := range machines {
				m := &r.machines[j]
				if at, ok := m.parts[result.Pool+"/"+result.Device]; ok && m.Driver == result.Driver {
					u := all[m.Name]
					u.Held = append(u.Held, holdOf(at, result))
					all[m.Name] = u
				}
			}
		}
	}
}

// claimNames are the claims of a pod: those it names, those made of its templates,
// and the one made for extended resources that a device class serves.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for _, pc := range pod.Spec.ResourceClaims {
		if pc.ResourceClaimName != nil {
			names = append(names, *pc.ResourceClaimName)
		}
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil {
			names = append(names, *s.ResourceClaimName)
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		names = append(names, s.ResourceClaimName)
	}
	return unique(names)
}

func holdOf(at place, result *resourcev1.DeviceRequestAllocationResult) Hold {
	h := Hold{at.index, at.milli, at.memory}
	if !shared(at.device) {
		return h
	}
	h.Milli, h.Memory, _ = share(at.device, func(name resourcev1.QualifiedName, _ resourcev1.DeviceCapacity) (q resource.Quantity, ok bool) {
		for n, consumed := range result.ConsumedCapacity {
			if qualified(result.Driver, n) == qualified(result.Driver, name) {
				return consumed, true
			}
		}
		return q, true
	})
	return h
}

// merged adds up holds by device.
func merged(holds []Hold) []Hold {
	byDevice := map[int]Hold{}
	for _, h := range holds {
		had := byDevice[h.Device]
		byDevice[h.Device] = Hold{h.Device, had.Milli + h.Milli, had.Memory + h.Memory}
	}
	return slices.SortedFunc(maps.Values(byDevice), func(a, b Hold) int { return cmp.Compare(a.Device, b.Device) })
}
