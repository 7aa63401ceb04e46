// Package inventory says in Muster's nouns what a Kubernetes cluster has and what
// its pods ask for. Nodes, with the resource slices of dynamic resource allocation
// and the registrations of the fraction plugin HAMi, become Machines and those a
// cluster.Cluster; pods, with their resource claims, become Needs. Objects go in and
// values come out: no client, no clock; the same objects give the same values.
//
// A cluster.Node has devices of one model. A Kubernetes node with several kinds (a
// mixed MIG node with nvidia.com/gpu and nvidia.com/mig-1g.5gb) is therefore several
// machines. Each of them counts the whole CPU and memory of the node, so the joint
// limit is not theirs to hold: the resource filter that looks at the Kubernetes node
// just before binding holds it.
//
// Read for it: k8s.io/api/resource/v1 of Kubernetes 1.36; KEP-4815 (partitionable
// devices) and KEP-5075 (consumable capacity) through the comments of those types;
// HAMi's docs/develop/protocol.md and device code on its main branch after v2.9.0
// (commit 4707fb02, August 2026); the label references of Topograph (v0.1.0 to v1.1)
// and Oracle's OKE. The labels of NVIDIA's, AMD's, Intel's, Google's and Amazon's
// device plugins are as their documentation names them.
package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Rules are an operator's settings. The zero value knows the common device plugins
// and topology labels.
type Rules struct {
	// Resources are device resources besides the known ones; of two entries for one
	// name these win.
	Resources []Resource
	// RackLabels are node labels, the tightest level first, of which one becomes the
	// rack; empty means the known ones. See RackLabel.
	RackLabels []string
	// Speeds are the speeds of models by name; others have 1.
	Speeds map[string]float64
	// IgnoreDrivers are drivers of dynamic resource allocation whose devices are not
	// accelerators, besides the known ones.
	IgnoreDrivers []string
	// MemoryFactor is HAMi's memoryFactor: MiB per unit of nvidia.com/gpumem; 0 is 1.
	MemoryFactor int64
}

// Machine is one kind of device on one Kubernetes node, or a node without devices.
type Machine struct {
	// Name is unique: the Kubernetes node's for its first kind of device, and with a
	// suffix ("node7/mig-1g.5gb") for every further one.
	Name     string
	KubeNode string
	Model    cluster.Model
	Count    int
	// Resource is the extended resource that pays for a device, and Driver the driver
	// of dynamic resource allocation that offers it. At most one is set.
	Resource string
	Driver   string
	// CPU and Memory are what the whole node can allocate.
	CPU    unit.Milli
	Memory unit.MiB
	Rack   string
	Uplink unit.Mbps // 0 is unlimited
	// Devices says what is known of each device; empty where a device plugin tells
	// only how many there are.
	Devices []Device
	// Parts are what the devices may be divided into by their driver.
	Parts []Part
	// Fractions says that parts of a device can be had by share and memory.
	Fractions bool
	// Out says in words why nothing new may start here; empty is in service.
	Out string

	kind  sample
	parts map[string]place // by pool/device: where an allocation of it is
}

// Device is one device of a machine.
type Device struct {
	Name    string // within Pool; empty where only the UUID is known
	Pool    string
	UUID    string
	NUMA    int // -1 is unknown
	PCIRoot string
	Memory  unit.MiB
	// Slots is how many may share it; 0 is no limit of its own.
	Slots int
	// Out says in words why it cannot be given out; empty is in service.
	Out string
}

// Part is a partition that a driver can make of a device (KEP-4815), such as a MIG
// profile: what it takes of the device. Parts share the counters of their device, so
// they are not counted as devices.
type Part struct {
	Name   string
	Milli  unit.Milli
	Memory unit.MiB

	kind sample
}

// Problem is why something cannot be said of an object, in words for its owner. The
// zero value is none.
type Problem struct {
	Text string
	// Later says that it may go away by itself: a node, a class or a claim may appear.
	// Other problems stay until the object is changed.
	Later bool
}

// None reports whether there is no problem.
func (p Problem) None() bool { return p.Text == "" }

func wrong(format string, a ...any) Problem { return Problem{Text: fmt.Sprintf(format, a...)} }

func later(format string, a ...any) Problem {
	return Problem{Text: fmt.Sprintf(format, a...), Later: true}
}

// What is beyond these is a mistake, and would not fit the engine's integers.
const (
	mostCPU     = unit.Milli(1_000_000) * unit.Whole
	mostMemory  = unit.MiB(1 << 30) // a pebibyte
	mostDevices = 10_000
)

// milliCPU, mebibytes and whole read a quantity; what fails them is named by the
// words of what was expected.
func milliCPU(q resource.Quantity) (unit.Milli, string) {
	if q.Sign() < 0 || q.CmpInt64(int64(mostCPU/unit.Whole)) > 0 {
		return 0, "expected 0 to 1,000,000 cores"
	}
	return unit.Milli(q.MilliValue()), ""
}

func mebibytes(q resource.Quantity) (unit.MiB, string) {
	if q.Sign() < 0 || q.CmpInt64(int64(mostMemory)<<20) > 0 {
		return 0, "expected 0 to 1Pi"
	}
	return unit.MiB((q.Value() + 1<<20 - 1) >> 20), ""
}

func whole(q resource.Quantity) (int64, string) {
	if q.Sign() < 0 || q.CmpInt64(mostDevices) > 0 || q.MilliValue()%1000 != 0 {
		return 0, "expected a whole number, 0 to 10,000"
	}
	return q.Value(), ""
}

// Order is the given order of machine names with those that are new appended,
// sorted by name. A name once in the order stays, so that a machine's position is
// its node id for good.
func Order(order []string, machines []Machine) []string {
	known := make(map[string]bool, len(order))
	for _, name := range order {
		known[name] = true
	}
	var fresh []string
	for i := range machines {
		if name := machines[i].Name; !known[name] {
			known[name] = true
			fresh = append(fresh, name)
		}
	}
	slices.Sort(fresh)
	return append(slices.Clone(order), fresh...)
}

// Cluster builds the cluster of machines whose nodes are in the order given, new
// machines behind (see Order). A machine that is gone keeps its place, with no
// devices, CPU or memory. Models and racks are numbered as they first appear. The
// error says in words what cannot be represented.
func Cluster(machines []Machine, order []string) (*cluster.Cluster, error) {
	byName := make(map[string]*Machine, len(machines))
	for i := range machines {
		if byName[machines[i].Name] != nil {
			return nil, fmt.Errorf("two machines are named %q: node names must be unique", machines[i].Name)
		}
		byName[machines[i].Name] = &machines[i]
	}
	order = Order(order, machines)
	c := &cluster.Cluster{Name: "kubernetes"}
	racks := map[string]int32{}
	seen := make(map[string]bool, len(order))
	for _, name := range order {
		if seen[name] {
			return nil, fmt.Errorf("the order of machines names %q twice", name)
		}
		seen[name] = true
		add(c, racks, name, byName[name])
	}
	if len(c.Models) > 64 {
		return nil, fmt.Errorf("the cluster has %d device models (%s): at most 64 can be told apart; "+
			"give several the same model by a resource entry or label", len(c.Models), modelNames(c.Models))
	}
	return c, nil
}

// add appends one machine, or the empty place of one that is gone.
func add(c *cluster.Cluster, racks map[string]int32, name string, m *Machine) {
	if m == nil {
		// A gone machine has no model; the first one stands in, as no device has it.
		if len(c.Models) == 0 {
			c.AddModel(cluster.Model{Name: cpuOnly, Speed: 1})
		}
		c.AddNode(cluster.Node{Name: name, Rack: rackID(c, racks, "gone")}, 0)
		return
	}
	id := c.AddNode(cluster.Node{Name: name, Rack: rackID(c, racks, m.Rack), Model: c.AddModel(m.Model),
		CPU: m.CPU, Memory: m.Memory, Uplink: m.Uplink}, m.Count)
	// Drivers of two versions report a model's memory a few MiB apart: the machine's
	// own word counts.
	devices := c.Devices[c.Nodes[id].First:]
	for i := range devices {
		devices[i].Memory = m.DeviceMemory(i)
	}
}

// DeviceMemory is the memory of device i.
func (m *Machine) DeviceMemory(i int) unit.MiB {
	if i < len(m.Devices) && m.Devices[i].Memory > 0 {
		return m.Devices[i].Memory
	}
	return m.Model.Memory
}

func rackID(c *cluster.Cluster, racks map[string]int32, name string) int32 {
	id, ok := racks[name]
	if !ok {
		id = c.AddRack(cluster.Rack{Name: name})
		racks[name] = id
	}
	return id
}

func modelNames(models []cluster.Model) string {
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func byName(a, b Machine) int { return cmp.Compare(a.Name, b.Name) }
