// Package cluster says what there is: nodes in racks, their devices, the legal
// partitions of a device, and the links between nodes. Values only, no I/O; the
// YAML a user writes is read by package spec.
package cluster

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Cluster is everything that can be allocated. Node, device, rack and model ids
// are positions in these slices.
type Cluster struct {
	Name    string
	Models  []Model
	Racks   []Rack
	Nodes   []Node
	Devices []Device
}

// Model is a kind of device.
type Model struct {
	Name   string
	Memory unit.MiB
	// Speed is the rate of this model for work that no measured table covers,
	// where 1 is the reference.
	Speed float64
	// Geometries are the legal partitions of one device. The first, or an empty
	// list, is the undivided device, which may still be shared by fractions.
	Geometries []Geometry
}

// Geometry is one legal way to cut a device into parts.
type Geometry struct {
	Name  string
	Parts []Part
}

// Part is one piece of a geometry: its compute and its memory, and where on the device
// it begins, in the device's own slots. Cutting a device another way leaves a part in
// use alone only if the new geometry has the same one in the same place.
type Part struct {
	Milli  unit.Milli
	Memory unit.MiB
	Start  int32
}

// Rack groups nodes behind one uplink.
type Rack struct {
	Name string
	// Uplink is the rack's bandwidth to the other racks; 0 is unlimited.
	Uplink unit.Mbps
}

// Node is a machine with devices of one model; its devices are
// Devices[First : First+Count].
type Node struct {
	Name   string
	Rack   int32
	Model  int32
	First  int32
	Count  int32
	CPU    unit.Milli // cores
	Memory unit.MiB   // host memory
	// Uplink is the node's bandwidth to its rack; 0 is unlimited.
	Uplink unit.Mbps
	// MilliPerHour is what the node costs, in thousandths of a unit of money per hour.
	// A rental is paid for only while it is rented.
	MilliPerHour int32
	Rental       bool
}

// Device is one accelerator, or one declared slot of cores and memory.
type Device struct {
	Node   int32
	Memory unit.MiB
}

// Links counts the links: one uplink per node, then one per rack.
func (c *Cluster) Links() int { return len(c.Nodes) + len(c.Racks) }

// NodeLink and RackLink are the ids of the uplinks of a node and a rack.
func (c *Cluster) NodeLink(node int32) int32 { return node }

// RackLink is the id of the uplink of a rack.
func (c *Cluster) RackLink(rack int32) int32 { return int32(len(c.Nodes)) + rack }

// RackLimits are the uplinks of the racks, where there are several and any has a limit; else none.
func (c *Cluster) RackLimits() (all []unit.Mbps) {
	limited := false
	for i := range c.Racks {
		all, limited = append(all, c.Racks[i].Uplink), limited || c.Racks[i].Uplink > 0
	}
	if len(all) < 2 || !limited {
		return nil
	}
	return all
}

// LinkBandwidth returns a link's capacity; 0 is unlimited.
func (c *Cluster) LinkBandwidth(link int32) unit.Mbps {
	if int(link) < len(c.Nodes) {
		return c.Nodes[link].Uplink
	}
	return c.Racks[int(link)-len(c.Nodes)].Uplink
}

// ModelID returns the id of a model by name.
func (c *Cluster) ModelID(name string) (int32, bool) {
	for i := range c.Models {
		if c.Models[i].Name == name {
			return int32(i), true
		}
	}
	return 0, false
}

// AddModel returns the id of the model of this name, adding it if it is new.
func (c *Cluster) AddModel(m Model) int32 {
	if id, ok := c.ModelID(m.Name); ok {
		return id
	}
	c.Models = append(c.Models, m)
	return int32(len(c.Models) - 1)
}

// AddRack appends a rack and returns its id.
func (c *Cluster) AddRack(r Rack) int32 {
	c.Racks = append(c.Racks, r)
	return int32(len(c.Racks) - 1)
}

// AddNode appends a node with count devices and returns its id; First and Count
// are filled in.
func (c *Cluster) AddNode(n Node, count int) int32 {
	n.First, n.Count = int32(len(c.Devices)), int32(count)
	id := int32(len(c.Nodes))
	c.Nodes = append(c.Nodes, n)
	for range count {
		c.Devices = append(c.Devices, Device{Node: id, Memory: c.Models[n.Model].Memory})
	}
	return id
}

// Uniform builds nodes of count devices each, in racks of rackNodes nodes: the
// shape behind the presets "gpus:NxM", philly and venus.
func Uniform(name string, nodes, count int, m Model, rackNodes int) *Cluster {
	c := &Cluster{Name: name}
	model := c.AddModel(m)
	for i := range nodes {
		if i%rackNodes == 0 {
			c.AddRack(Rack{Name: fmt.Sprintf("rack%d", i/rackNodes)})
		}
		c.AddNode(Node{Name: fmt.Sprintf("node%d", i), Rack: int32(i / rackNodes), Model: model,
			CPU: unit.Milli(count) * 12 * unit.Whole, Memory: unit.MiB(count) * 64 << 10}, count)
	}
	return c
}

// Plus returns a cluster with the nodes of another appended, in racks of the same
// names where there are any; a node of the name of the last one is more devices of that.
// It shares what does not change, and c stays as it is.
func (c *Cluster) Plus(more *Cluster) (*Cluster, error) {
	sum := &Cluster{Name: c.Name, Models: c.Models, Racks: slices.Clone(c.Racks), Nodes: slices.Clone(c.Nodes), Devices: slices.Clone(c.Devices)}
	racks := map[string]int32{}
	for i := range sum.Racks {
		racks[sum.Racks[i].Name] = int32(i)
	}
	for i := range more.Nodes {
		n := more.Nodes[i]
		model, known := c.ModelID(more.Models[n.Model].Name)
		if !known {
			return nil, fmt.Errorf("node %s has devices of model %q, which the cluster does not know", n.Name, more.Models[n.Model].Name)
		}
		if last := len(sum.Nodes) - 1; last >= 0 && n.Name != "" && sum.Nodes[last].Name == n.Name && sum.Nodes[last].Model == model {
			sum.Nodes[last].Count += n.Count
			for range n.Count {
				sum.Devices = append(sum.Devices, Device{Node: int32(last), Memory: sum.Models[model].Memory})
			}
			continue
		}
		rack := more.Racks[n.Rack]
		if _, known := racks[rack.Name]; !known {
			racks[rack.Name] = sum.AddRack(rack)
		}
		n.Model, n.Rack = model, racks[rack.Name]
		sum.AddNode(n, int(n.Count))
	}
	return sum, nil
}
