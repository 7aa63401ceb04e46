// Package parallel spreads a large model over devices: how many devices share each layer
// (tensor), which layers stand where (pipeline), how many copies work on parts of the batch
// (data), and what is kept or computed again. A Planner returns plans; Simulate says what a
// plan takes, by the task graph, and is what plans are ranked by. What a job asks for and what
// a cluster is, the package does not know.
package parallel

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
)

// Why says to a user why there is no plan; empty means that there is one.
type Why = pipeline.Why

func whyf(format string, args ...any) Why { return Why(fmt.Sprintf(format, args...)) }

// Model is what is trained, and how.
type Model struct {
	Name    string
	Profile Profile
	Batch   int // samples of one step, over all copies
	State   State
	// Waits has both ends of a border between two ranks wait for what goes over it, as the programs do
	// whose steps were measured; else it goes beside the passes.
	Waits bool
}

// Profile tells what the layers of a model cost.
type Profile interface {
	// Layers is how many there are, in a chain.
	Layers() int
	// Ways are how one microbatch of so many samples can pass a layer that is split over
	// `tensor` devices of a kind, from the fastest to the leanest; or why it cannot be split so.
	Ways(layer int, on *Device, tensor, samples int) ([]Layer, Why)
}

// Layer is what one microbatch takes of each device that holds a part of a layer.
type Layer struct {
	// Again is what the backward pass computes again of the forward one. Input and Weight
	// are its halves.
	Forward, Again, Input, Weight unit.Duration
	ParamKiB                      int64   // weights, in the precision that the passes use
	ActivationKiB                 int64   // kept from the forward pass until the last of the backward ones
	OutputKiB                     int64   // sent to the next layer, by all its devices together; as much comes back
	ReduceKiB                     int64   // summed up among the devices of the layer in the forward pass, and again in the backward one
	GFlop                         float64 // useful operations of both passes; what is computed again is not
	Way                           string  // how it runs, such as "full" for all computed again; empty is the fastest
	Mixture                       Mixture // its experts, where it has some
}

// State is what a device holds for its weights, as multiples of them.
type State struct {
	Weights, Gradients, Optimizer float64
	// Sharded spreads the state of the optimiser over the copies.
	Sharded bool
}

// MixedAdam is half precision with gradients, weights and two moments in single precision.
var MixedAdam = State{Weights: 1, Gradients: 2, Optimizer: 6}

// ShardedAdam is the same with the state of the optimiser spread over the copies.
var ShardedAdam = State{Weights: 1, Gradients: 2, Optimizer: 6, Sharded: true}

// Device is a kind of device.
type Device struct {
	Name      string
	Memory    unit.MiB
	TFlops    float64 // dense, in the precision of the passes
	MemoryGBs float64 // of its memory
	Inside    Link    // to the others of its node
	// Reach is what part of TFlops and MemoryGBs programs get of it; 0 is all.
	Reach float64
	// Launch is what each pass of a block takes besides, as its kernels have to be started.
	Launch unit.Duration
	// Reserve is the part of Memory that no plan may count on: programs hold it for themselves.
	Reserve unit.MiB
}

// Room is what a plan may hold on the device; 0 is that nothing bounds it.
func (d *Device) Room() unit.MiB {
	if d.Memory == 0 {
		return 0
	}
	return max(1, d.Memory-d.Reserve)
}

// reached is what programs get of a rate of the device.
func (d *Device) reached(rate float64) float64 {
	if d.Reach == 0 {
		return rate
	}
	return d.Reach * rate
}

// Link is a way between two devices, in each direction.
type Link = pipeline.Link

// Node is a machine of like devices.
type Node struct {
	Kind  int32 // of Devices.Kinds
	Count int32
	Site  int32
	Rack  int32
	Out   unit.Mbps // to other nodes, all its devices together; 0 is endless
}

// Devices are what a plan may use. They are numbered node by node.
type Devices struct {
	Kinds []Device
	Nodes []Node
	// Racks are what the nodes of each have to those of others, all their devices together; 0 is endless, and none
	// means that all are in one.
	Racks []unit.Mbps
	// Sites hold the links from site to site, as a node has them to one of the other site, all its devices
	// together; of one to itself only the latency counts. None means that the network between the
	// nodes is even, and without latency.
	Sites [][]Link
	// Speeds are those of the devices against their kind, where some are slow; none means 1.
	Speeds []float64

	node   []int32 // of each device
	racked []int32 // devices of each rack
}

// Index counts the devices. Whoever changes Nodes calls it again.
func (d *Devices) Index() *Devices {
	d.node = d.node[:0]
	for i, n := range d.Nodes {
		for range n.Count {
			d.node = append(d.node, int32(i))
		}
	}
	d.racked = make([]int32, len(d.Racks))
	for _, n := range d.Nodes {
		if d.Racks != nil {
			d.racked[n.Rack] += n.Count
		}
	}
	return d
}

// Even are nodes of one kind at one site.
func Even(kind Device, nodes, count int, out unit.Mbps) *Devices {
	d := &Devices{Kinds: []Device{kind}}
	for range nodes {
		d.Nodes = append(d.Nodes, Node{Count: int32(count), Out: out})
	}
	return d.Index()
}

// Len is how many devices there are.
func (d *Devices) Len() int { return len(d.node) }

// NodeOf is the node of a device.
func (d *Devices) NodeOf(device int32) int32 { return d.node[device] }

// Kind is the kind of a device.
func (d *Devices) Kind(device int32) *Device { return &d.Kinds[d.Nodes[d.node[device]].Kind] }

// speed is the slowest of some devices against its kind: devices that share a layer wait for each
// other after every product.
func (d *Devices) speed(group []int32) float64 {
	slowest := 1.
	for _, g := range group {
		if d.Speeds != nil {
			slowest = min(slowest, d.Speeds[g])
		}
	}
	return slowest
}

// Alike says whether two groups are of one kind of device, and as slow against it.
func (d *Devices) Alike(a, b []int32) bool {
	return d.Nodes[d.node[a[0]]].Kind == d.Nodes[d.node[b[0]]].Kind && d.speed(a) == d.speed(b)
}

// Without are the devices that are left, with the numbers that they had. A node without a device
// goes, and one with some keeps its whole uplink for those.
func (d *Devices) Without(lost []int32) (left *Devices, was []int32) {
	left = &Devices{Kinds: d.Kinds, Nodes: slices.Clone(d.Nodes), Racks: d.Racks, Sites: d.Sites}
	for i := range left.Nodes {
		left.Nodes[i].Count = 0
	}
	for g, node := range d.node {
		if slices.Contains(lost, int32(g)) {
			continue
		}
		left.Nodes[node].Count++
		was = append(was, int32(g))
		if d.Speeds != nil {
			left.Speeds = append(left.Speeds, d.Speeds[g])
		}
	}
	left.Nodes = slices.DeleteFunc(left.Nodes, func(n Node) bool { return n.Count == 0 })
	return left.Index(), was
}

// Between is the link from one group of devices to another, as each has it for itself: a
// device gets its part of the uplink of its node. The slowest pair of places counts.
func (d *Devices) Between(from, to []int32) Link {
	a, b := d.node[from[0]], d.node[to[0]]
	if a == b {
		return d.Kind(from[0]).Inside
	}
	l := Link{Bandwidth: least(d.share(a, len(from), d.Nodes[a].Out), d.share(b, len(to), d.Nodes[b].Out))}
	if d.Racks != nil && d.Nodes[a].Rack != d.Nodes[b].Rack {
		l.Bandwidth = least(l.Bandwidth, least(d.rackShare(a, len(from)), d.rackShare(b, len(to))))
	}
	if len(d.Sites) > 0 {
		wan := d.Sites[d.Nodes[a].Site][d.Nodes[b].Site]
		if l.Latency = wan.Latency; d.Nodes[a].Site != d.Nodes[b].Site {
			l.Bandwidth = least(l.Bandwidth, least(d.share(a, len(from), wan.Bandwidth), d.share(b, len(to), wan.Bandwidth)))
		}
	}
	return l
}

// rackShare is what so many devices of a node get of the uplink of its rack.
func (d *Devices) rackShare(node int32, devices int) unit.Mbps {
	rack := d.Nodes[node].Rack
	if d.Racks[rack] == 0 {
		return 0
	}
	return max(1, d.Racks[rack]*unit.Mbps(devices)/unit.Mbps(max(1, d.racked[rack])))
}

// share is what so many devices of a node get of what all of it have; 0 is endless.
func (d *Devices) share(node int32, devices int, of unit.Mbps) unit.Mbps {
	n := &d.Nodes[node]
	if of == 0 {
		return 0
	}
	return max(1, of*unit.Mbps(min(devices, int(n.Count)))/unit.Mbps(n.Count))
}

// least is the slower of two bandwidths, of which 0 is endless.
func least(a, b unit.Mbps) unit.Mbps {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// ring is what a group of devices takes to sum up so much that each holds, in a ring: a node's
// members send to the next node together.
func (d *Devices) ring(group []int32) overlap.Costs {
	slowest, members := d.Kind(group[0]).Inside, map[int32][]int32{}
	for _, g := range group {
		members[d.node[g]] = append(members[d.node[g]], g)
	}
	for i, g := range group {
		if to := group[(i+1)%len(group)]; d.node[g] != d.node[to] {
			l := d.Between(members[d.node[g]], members[d.node[to]])
			slowest = Link{Bandwidth: least(slowest.Bandwidth, l.Bandwidth), Latency: max(slowest.Latency, l.Latency)}
		}
	}
	return overlap.Ring(nil, len(group), slowest)
}
