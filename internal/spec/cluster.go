package spec

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
)

// maxDevices bounds the devices of a cluster, and its nodes.
const maxDevices = 2_000_000

// Hosts that a file says nothing about have this much per device, as those of
// cluster.Uniform have.
const (
	cpuPerDevice    = 12 * unit.Whole
	memoryPerDevice = 64 << 10 // MiB
)

// clusterFile is a cluster as a user writes it.
type clusterFile struct {
	Name   string
	Models []cluster.Model
	Sites  []siteFile
	Racks  []rackFile
}

type rackFile struct {
	Name   string
	Site   string // may be left out where there are none
	Uplink unit.Mbps
	Nodes  []nodeFile
}

// nodeFile is one node, or several that are alike.
type nodeFile struct {
	Name    string // with a Count above 1, NAME0, NAME1, ...
	Names   string // node[00-15,20]
	Count   int32
	Model   string // may be left out where there is one model
	Devices int32
	CPU     unit.Milli
	Memory  unit.MiB
	Uplink  unit.Mbps
	// PricePerHour is in units of money; a Rental is paid for only while it is rented.
	PricePerHour unit.Milli
	Rental       bool
}

// Cluster reads a cluster file. An error is of type Problems.
func Cluster(file string, data []byte) (*cluster.Cluster, error) {
	return clusterOf(file, data, ResolveOptions{})
}

func clusterOf(file string, data []byte, options ResolveOptions) (*cluster.Cluster, error) {
	d := newDecoder(file)
	var f clusterFile
	d.document(data, reflect.ValueOf(&f).Elem())
	c := &cluster.Cluster{Name: f.Name, Models: f.Models}
	d.checkName("name", f.Name, "")
	for i := range c.Models {
		d.checkModel(fmt.Sprintf("models[%d]", i), c, i)
		if name := c.Models[i].Name; options.Knows != nil && name != "" && !options.Knows(name) {
			d.wrong(fmt.Sprintf("models[%d].name", i), quote(name), "a device of which is known what it computes", didYouMean(name, options.Known))
		}
	}
	sites := d.sites(&f, options.Sites != nil)
	nodes := map[string]bool{}
	for i, rack := range f.Racks {
		path := fmt.Sprintf("racks[%d]", i)
		d.checkName(path+".name", rack.Name, "")
		if rack.Name == "" {
			rack.Name = fmt.Sprintf("rack%d", i)
		}
		id := c.AddRack(cluster.Rack{Name: rack.Name, Uplink: rack.Uplink})
		for j := range rack.Nodes {
			d.addNodes(fmt.Sprintf("%s.nodes[%d]", path, j), c, id, &rack.Nodes[j], nodes)
		}
	}
	if len(d.problems) == 0 && len(c.Nodes) == 0 {
		d.wrong("racks", "no node", "at least one", "list nodes under racks[0].nodes")
	}
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	if options.Sites != nil {
		*options.Sites = sites
	}
	return c, nil
}

// checkModel checks the i-th model and puts the undivided device in front of its
// geometries, where a file may leave it out.
func (d *decoder) checkModel(path string, c *cluster.Cluster, i int) {
	m := &c.Models[i]
	if m.Name == "" {
		d.wrong(path+".name", "nothing", "a name", "give the model one")
	} else if id, _ := c.ModelID(m.Name); id < int32(i) {
		d.wrong(path+".name", "the model "+quote(m.Name)+" a second time", "", "remove one of the two")
	}
	d.checkName(path+".name", m.Name, "/")
	if m.Memory < 1 {
		d.wrong(path+".memory", zeroOr(d, path+".memory"), "the memory of one device", "add it, as in memory: 80GiB")
	}
	if m.Speed <= 0 || m.Speed > 1000 {
		d.wrong(path+".speed", fmt.Sprint(m.Speed), "a rate above 0, up to 1000, where 1 is the reference", "")
	}
	for g, geometry := range m.Geometries {
		at := fmt.Sprintf("%s.geometries[%d].parts", path, g)
		var milli unit.Milli
		var memory unit.MiB
		for p, part := range geometry.Parts {
			milli, memory = milli+part.Milli, memory+part.Memory
			if part.Milli < 1 || part.Memory < 1 {
				d.wrong(fmt.Sprintf("%s[%d]", at, p), "a part without compute or memory", "both", "write {compute: 500m, memory: 40GiB}")
			}
		}
		switch {
		case len(geometry.Parts) == 0:
			d.wrong(at, "no part", "at least one", "list them as {compute: 500m, memory: 40GiB}")
		case milli > unit.Whole:
			d.wrong(at, fmt.Sprintf("parts of %dm in all", milli), "at most 1000m", "round parts down, as in 142m for a seventh")
		case memory > m.Memory && m.Memory > 0:
			d.wrong(at, fmt.Sprintf("parts of %v in all", memory), "at most the memory of the device, "+m.Memory.String(), "")
		}
	}
	whole := cluster.Part{Milli: unit.Whole, Memory: m.Memory}
	if g := m.Geometries; len(g) > 0 && (len(g[0].Parts) != 1 || g[0].Parts[0] != whole) {
		m.Geometries = append([]cluster.Geometry{{Name: "whole", Parts: []cluster.Part{whole}}}, g...)
	}
}

// zeroOr says in a message that a quantity is zero or not given.
func zeroOr(d *decoder, path string) string {
	if d.has(path) {
		return "0"
	}
	return "nothing"
}

// addNodes adds the nodes of one entry to rack; taken are the names so far.
func (d *decoder) addNodes(path string, c *cluster.Cluster, rack int32, f *nodeFile, taken map[string]bool) {
	between(d, path+".devices", f.Devices, 0, maxDevices)
	between(d, path+".count", f.Count, 1, maxDevices)
	if !d.has(path + ".devices") {
		d.wrong(path+".devices", "nothing", "the number of devices of the node", "add it, as in devices: 8; 0 is a node without")
	}
	names := make([]string, len(c.Models))
	for i, m := range c.Models {
		names[i] = m.Name
	}
	model, ok := c.ModelID(f.Model)
	switch {
	case len(c.Models) == 0:
		d.wrong("models", "no model", "the models of the devices", "add models: [{name: A100, memory: 80GiB}]")
	case !ok && (f.Model != "" || len(c.Models) > 1) && f.Devices != 0:
		d.wrong(path+".model", orNothing(f.Model), "one of the models above", didYouMean(f.Model, names))
	}
	if d.bad[path+".devices"] || d.bad[path+".count"] {
		return
	}
	room := (maxDevices - max(len(c.Nodes), len(c.Devices))) / max(1, int(f.Devices))
	all, complaint := nodeNames(f, d.has(path+".count"), room)
	if complaint != nil {
		d.wrong(path, complaint.found, complaint.expected, complaint.do)
		return
	}
	if f.CPU == 0 {
		f.CPU = cpuPerDevice * unit.Milli(f.Devices)
	}
	if f.Memory == 0 {
		f.Memory = memoryPerDevice * unit.MiB(f.Devices)
	}
	named := path + ".names"
	if f.Name != "" {
		named = path + ".name"
	}
	for _, name := range all {
		d.checkName(named, name, "")
		if taken[name] {
			d.wrong(named, "the node "+quote(name)+" a second time", "names that are unique in the cluster", "rename it")
			return
		}
		taken[name] = true
		if len(d.problems) == 0 {
			c.AddNode(cluster.Node{Name: name, Rack: rack, Model: model, CPU: f.CPU, Memory: f.Memory, Uplink: f.Uplink,
				MilliPerHour: int32(f.PricePerHour), Rental: f.Rental}, int(f.Devices))
		}
	}
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return quote(s)
}

// complaint is a problem that is yet without its place.
type complaint struct{ found, expected, do string }

// nodeNames lists the names of the nodes of one entry, at most room of them.
func nodeNames(f *nodeFile, counted bool, room int) ([]string, *complaint) {
	tooMany := &complaint{"too many nodes or devices", fmt.Sprintf("at most %d of either in a cluster", maxDevices), "describe a smaller cluster"}
	switch {
	case (f.Name == "") == (f.Names == ""):
		return nil, &complaint{"a node with both name and names, or neither", "one of them", "write name: node7 or names: node[0-15]"}
	case f.Names != "":
		names, wrong := expand(f.Names, room, tooMany)
		if wrong == nil && counted && len(names) != int(f.Count) {
			return nil, &complaint{fmt.Sprintf("%d names for a count of %d", len(names), f.Count), "as many", "remove count"}
		}
		return names, wrong
	case int(f.Count) > room:
		return nil, tooMany
	case f.Count == 1:
		return []string{f.Name}, nil
	}
	names := make([]string, max(0, f.Count))
	for i := range names {
		names[i] = f.Name + strconv.Itoa(i)
	}
	return names, nil
}

// expand lists the names that a pattern such as node[00-15,20]-b stands for. Numbers
// have the width of the lower end.
func expand(pattern string, room int, tooMany *complaint) ([]string, *complaint) {
	wrong := &complaint{"the names " + quote(pattern), "numbers in one pair of brackets, as in node[0-15] or node[00-15,20]", ""}
	prefix, rest, open := strings.Cut(pattern, "[")
	ranges, suffix, closed := strings.Cut(rest, "]")
	if !open || !closed || strings.ContainsAny(prefix+ranges+suffix, "[]") {
		return nil, wrong
	}
	var names []string
	for _, r := range strings.Split(ranges, ",") {
		low, high, isRange := strings.Cut(r, "-")
		if !isRange {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 32)
		to, err2 := strconv.ParseUint(high, 10, 32)
		if err != nil || err2 != nil || to < from || len(low) > 10 {
			return nil, wrong
		}
		if to-from >= uint64(max(0, room-len(names))) {
			return nil, tooMany
		}
		for n := from; n <= to; n++ {
			names = append(names, fmt.Sprintf("%s%0*d%s", prefix, len(low), n, suffix))
		}
	}
	return names, nil
}
