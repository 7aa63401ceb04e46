package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ignored are drivers whose devices are not accelerators: the channels of NVIDIA's
// compute domains, CPUs, network interfaces. Pods that ask for them are placed by the
// filter alone.
var ignored = []string{"compute-domain.nvidia.com", "dra.cpu", "cpu.dra.k8s.io", "dra.net", "dra.memory"}

func (r *Rules) ignores(driver string) bool {
	return slices.Contains(ignored, driver) || slices.Contains(r.IgnoreDrivers, driver)
}

// sample is a device that stands for all of its kind when a class's selectors are
// asked about them. Exact matching is the filter's.
type sample struct {
	driver string
	device *resourcev1.Device
}

// place is where an allocation of a device or partition is: on which device of a
// machine, and how much of it.
type place struct {
	index  int
	milli  unit.Milli
	memory unit.MiB
	device *resourcev1.Device
}

// pools lists what the drivers of dynamic resource allocation offer, as machines
// without a name, by Kubernetes node.
func (r *Rules) pools(all []*resourcev1.ResourceSlice) (map[string][]Machine, []Problem) {
	pools := map[string][]*resourcev1.ResourceSlice{}
	for _, s := range all {
		if !r.ignores(s.Spec.Driver) {
			key := s.Spec.Driver + "\x00" + s.Spec.Pool.Name
			pools[key] = append(pools[key], s)
		}
	}
	byNode := map[string][]Machine{}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(pools)) {
		p := newest(pools[key])
		slices.SortFunc(p, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
		spec := &p[0].Spec
		if int64(len(p)) < spec.Pool.ResourceSliceCount {
			problems = append(problems, later("driver %s, pool %s: %d of %d resource slices are there; its devices are not counted until all are",
				spec.Driver, spec.Pool.Name, len(p), spec.Pool.ResourceSliceCount))
			continue
		}
		if apart := r.pool(byNode, p); apart > 0 {
			problems = append(problems, wrong("driver %s, pool %s: %d devices belong to no single node; they are not counted, and pods that ask for them are placed by the filter alone",
				spec.Driver, spec.Pool.Name, apart))
		}
	}
	return byNode, problems
}

// newest are the slices of a pool's newest generation; older ones are being replaced.
func newest(pool []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	generation := pool[0].Spec.Pool.Generation
	for _, s := range pool {
		generation = max(generation, s.Spec.Pool.Generation)
	}
	return slices.DeleteFunc(slices.Clone(pool), func(s *resourcev1.ResourceSlice) bool {
		return s.Spec.Pool.Generation != generation
	})
}

// pool adds the devices of one pool to the machines of their nodes and returns how
// many belong to no single node.
func (r *Rules) pool(byNode map[string][]Machine, p []*resourcev1.ResourceSlice) (apart int) {
	counters := map[string]map[string]resourcev1.Counter{}
	onNode := map[string][]*resourcev1.Device{}
	for _, s := range p {
		for _, set := range s.Spec.SharedCounters {
			counters[set.Name] = set.Counters
		}
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			node := s.Spec.NodeName
			if s.Spec.PerDeviceNodeSelection != nil && *s.Spec.PerDeviceNodeSelection {
				node = d.NodeName
			}
			if node == nil || *node == "" {
				apart++
				continue
			}
			onNode[*node] = append(onNode[*node], d)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(onNode)) {
		for _, g := range group(onNode[node], counters) {
			byNode[node] = r.offer(byNode[node], &p[0].Spec, g)
		}
	}
	return apart
}

// divided is one device that is counted, with those that share its counters and can
// only be had instead of it.
type divided struct {
	whole   *resourcev1.Device
	takes   float64 // of the counters of its sets, at most 1
	instead []*resourcev1.Device
	parts   []float64 // what each of instead takes
}

// group counts devices: those that consume counters in the order of how much they
// take, each only while its counters still allow it. What no longer fits shares its
// counters with one that was counted and is a way to divide that one, not a further
// device.
func group(devices []*resourcev1.Device, counters map[string]map[string]resourcev1.Counter) []divided {
	devices = slices.Clone(devices)
	takes := make(map[*resourcev1.Device]float64, len(devices))
	for _, d := range devices {
		takes[d] = taken(d, counters)
	}
	slices.SortStableFunc(devices, func(a, b *resourcev1.Device) int {
		return cmp.Or(cmp.Compare(takes[b], takes[a]), natural(a.Name, b.Name))
	})
	left := copyCounters(counters)
	counted := map[string]int{} // by counter set: the first device that was counted on it
	var all []divided
	for _, d := range devices {
		if !consume(left, d) {
			for _, c := range d.ConsumesCounters {
				if i, ok := counted[c.CounterSet]; ok {
					all[i].instead = append(all[i].instead, d)
					all[i].parts = append(all[i].parts, takes[d])
					break
				}
			}
			continue // without one counted it could never be allocated
		}
		for _, c := range d.ConsumesCounters {
			if _, ok := counted[c.CounterSet]; !ok {
				counted[c.CounterSet] = len(all)
			}
		}
		all = append(all, divided{whole: d, takes: takes[d]})
	}
	slices.SortStableFunc(all, func(a, b divided) int { return natural(a.whole.Name, b.whole.Name) })
	return all
}

// taken is the largest part of any counter that a device consumes; 1 where it
// consumes none.
func taken(d *resourcev1.Device, counters map[string]map[string]resourcev1.Counter) float64 {
	if len(d.ConsumesCounters) == 0 {
		return 1
	}
	most := 0.0
	for _, c := range d.ConsumesCounters {
		for name, n := range c.Counters {
			total := counters[c.CounterSet][name]
			if t := total.Value.AsApproximateFloat64(); t > 0 {
				most = max(most, n.Value.AsApproximateFloat64()/t)
			}
		}
	}
	return min(most, 1)
}

func copyCounters(counters map[string]map[string]resourcev1.Counter) map[string]map[string]resource.Quantity {
	left := make(map[string]map[string]resource.Quantity, len(counters))
	for set, cs := range counters {
		left[set] = make(map[string]resource.Quantity, len(cs))
		for name, c := range cs {
			left[set][name] = c.Value.DeepCopy()
		}
	}
	return left
}

// consume takes what a device needs of the counters, or nothing if they do not have it.
func consume(left map[string]map[string]resource.Quantity, d *resourcev1.Device) bool {
	for _, c := range d.ConsumesCounters {
		for name, n := range c.Counters {
			if have, ok := left[c.CounterSet][name]; !ok || have.Cmp(n.Value) < 0 {
				return false
			}
		}
	}
	for _, c := range d.ConsumesCounters {
		for name, n := range c.Counters {
			have := left[c.CounterSet][name]
			have.Sub(n.Value)
			left[c.CounterSet][name] = have
		}
	}
	return true
}

// offer adds one counted device and its parts to the machine of its model.
func (r *Rules) offer(ms []Machine, spec *resourcev1.ResourceSliceSpec, g divided) []Machine {
	name := deviceModel(spec.Driver, g.whole)
	i := slices.IndexFunc(ms, func(m Machine) bool { return m.Driver == spec.Driver && m.Model.Name == name })
	if i < 0 {
		i = len(ms)
		ms = append(ms, Machine{Model: r.named(name, deviceMemory(g.whole)), Driver: spec.Driver,
			kind: sample{spec.Driver, g.whole}, parts: map[string]place{}})
	}
	m := &ms[i]
	index := len(m.Devices)
	m.Fractions = m.Fractions || shared(g.whole) || len(g.instead) > 0
	m.Count++
	m.Devices = append(m.Devices, Device{Name: g.whole.Name, Pool: spec.Pool.Name, UUID: text(g.whole, "uuid"),
		NUMA: numa(g.whole), PCIRoot: text(g.whole, "pcieRoot"), Memory: deviceMemory(g.whole), Out: tainted(g.whole)})
	m.parts[spec.Pool.Name+"/"+g.whole.Name] = place{index, unit.Whole, deviceMemory(g.whole), g.whole}
	for k, d := range g.instead {
		part := Part{Name: deviceModel(spec.Driver, d), Memory: deviceMemory(d), kind: sample{spec.Driver, d},
			// Rounded down, as seven sevenths must fit; the counters are the filter's.
			Milli: max(1, unit.Milli(1000*g.parts[k]/max(g.takes, g.parts[k])))}
		m.parts[spec.Pool.Name+"/"+d.Name] = place{index, part.Milli, part.Memory, d}
		if !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.Name == part.Name }) {
			m.Parts = append(m.Parts, part)
		}
	}
	slices.SortFunc(m.Parts, func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
	return ms
}

func shared(d *resourcev1.Device) bool {
	return d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
}

// deviceModel is the model of a device by its attributes, whichever driver's they are.
func deviceModel(driver string, d *resourcev1.Device) string {
	name := ""
	for _, id := range []string{"productName", "model", "product", "type"} {
		if name = text(d, id); name != "" {
			break
		}
	}
	if name == "" {
		name = driver
	}
	if profile := text(d, "profile"); profile != "" {
		name += "-MIG-" + profile
	}
	return tidy(name)
}

// text is a string attribute by its name without domain. Of several domains the first
// in order counts.
func text(d *resourcev1.Device, id string) string {
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		if unqualified(string(name)) == id {
			if v := d.Attributes[name].StringValue; v != nil {
				return *v
			}
		}
	}
	return ""
}

func numa(d *resourcev1.Device) int {
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		switch unqualified(string(name)) {
		case "numa", "numaNode", "numaNodeID":
			if v := d.Attributes[name].IntValue; v != nil && *v >= 0 && *v < 1<<16 {
				return int(*v)
			}
		}
	}
	return -1
}

func deviceMemory(d *resourcev1.Device) unit.MiB {
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		if unqualified(string(name)) == "memory" {
			if m, says := hostMemory(d.Capacity[name].Value); says == "" {
				return m
			}
		}
	}
	return 0
}

func unqualified(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// tainted says why a device is kept from pods. Pods that tolerate the taint are not
// placed on it by the engine either.
func tainted(d *resourcev1.Device) string {
	for _, t := range d.Taints {
		if t.Effect == resourcev1.DeviceTaintEffect(corev1.TaintEffectNoSchedule) || t.Effect == resourcev1.DeviceTaintEffectNoExecute {
			return "the device has the taint " + t.Key + ":" + string(t.Effect)
		}
	}
	return ""
}

// natural orders names so that gpu-2 comes before gpu-10.
func natural(a, b string) int {
	if x, y := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789"); x == y {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}
