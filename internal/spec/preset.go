package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/shape"
)

const presetRackNodes = 16

// Preset returns the cluster that a name stands for; ok is whether it is the name
// of a preset at all. Hosts and links are those of cluster.Uniform, in racks of 16.
//
//   - gpus:NxM is N nodes of M devices of 32 GiB.
//   - a100:NxM, h100:NxM and so on are N nodes of M such devices, with the network of
//     their vendor's machines (shape.Devices).
//   - philly has the 2,490 GPUs of the ATC'19 paper in servers of 2 and of 8. The
//     split is a reconstruction: of the whole numbers of either that add up, 231
//     servers of 8 and 321 of 2 are the ones that make 552 servers, which is how
//     many the published machine list is remembered to have. GPUs of the large
//     servers have 24 GiB and of the small ones 12 GiB, at equal speed for want of
//     any published figure.
//   - venus is the cluster of that name in Helios (SC'21): 133 nodes of 8 V100.
func Preset(name string) (c *cluster.Cluster, ok bool, err error) {
	if device, size, sized := strings.Cut(name, ":"); sized {
		if c, err := ofDevices(name, device, size); c != nil || err != nil {
			return c, true, err
		}
	}
	switch name {
	case "philly":
		return philly(), true, nil
	case "venus":
		return cluster.Uniform(name, 133, 8, cluster.Model{Name: "V100", Memory: 32 << 10, Speed: 1}, presetRackNodes), true, nil
	}
	return nil, false, nil
}

// across is the link of a preset of two sites: what a machine in Virginia and one in Oregon have between
// them, as measured between regions of AWS (config.py of DS3Lab/DT-FM).
var across = pipeline.Link{Bandwidth: 1150, Latency: 67 * unit.Millisecond}

// twoSites is a preset of two sites, such as a100:4x8+2x8; ok is whether a name is that of one.
func twoSites(name string, options ResolveOptions) (c *cluster.Cluster, ok bool, err error) {
	device, sizes, _ := strings.Cut(name, ":")
	here, there, two := strings.Cut(sizes, "+")
	if !two || strings.ContainsAny(name, "./") {
		return nil, false, nil
	}
	if options.Sites == nil {
		return nil, true, fmt.Errorf("cluster %q: found two sites, expected one, as only muster plan knows links between sites", name)
	}
	c = &cluster.Cluster{Name: name}
	s := Sites{Names: []string{"east", "west"}, Links: [][]pipeline.Link{{{}, across}, {across, {}}}, PerGB: [][]unit.Milli{{0, 0}, {0, 0}}}
	for site, size := range []string{here, there} {
		one, err := ofDevices(name, device, size)
		if err != nil || one == nil {
			return nil, true, errors.Join(err, fmt.Errorf("cluster %q: expected DEVICE:NxM+NxM, nodes and devices of each at two sites, as in a100:4x8+2x8", name))
		}
		if c.Models = one.Models; len(c.Devices)+len(one.Devices) > maxDevices {
			return nil, true, fmt.Errorf("cluster %q: expected at most %d devices", name, maxDevices)
		}
		first := int32(len(c.Racks))
		for _, r := range one.Racks {
			r.Name = s.Names[site] + "-" + r.Name
			c.AddRack(r)
			s.Of = append(s.Of, int32(site))
		}
		for _, n := range one.Nodes {
			n.Name, n.Rack = s.Names[site]+"-"+n.Name, first+n.Rack
			c.AddNode(n, int(n.Count))
		}
	}
	*options.Sites = s
	return c, true, nil
}

// ofDevices is a cluster of like machines, or nil where there is no such device.
func ofDevices(name, device, size string) (*cluster.Cluster, error) {
	model := cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}
	if device != "gpus" {
		like, why := shape.Like(device, 0, shape.Half)
		if why != "" {
			return nil, nil
		}
		model.Name, model.Memory = like.Name, like.Memory
	}
	n, m, _ := strings.Cut(size, "x")
	nodes, err := strconv.ParseUint(n, 10, 32)
	devices, err2 := strconv.ParseUint(m, 10, 32)
	if err != nil || err2 != nil || nodes < 1 || devices < 1 || nodes*devices > maxDevices {
		return nil, fmt.Errorf("cluster %q: expected %s:NxM, N nodes of M devices, at most %d devices, as in %s:16x8", name, device, maxDevices, device)
	}
	c := cluster.Uniform(name, int(nodes), int(devices), model, presetRackNodes)
	for i := range c.Nodes {
		c.Nodes[i].Uplink = shape.Uplink(model.Name, int(devices)) // none is known of "gpu"
	}
	return c, nil
}

// philly appends the small servers, in racks of their own, to the large ones.
func philly() *cluster.Cluster {
	const large, small = 231, 321
	c := cluster.Uniform("philly", large, 8, cluster.Model{Name: "gpu-24g", Memory: 24 << 10, Speed: 1}, presetRackNodes)
	model := c.AddModel(cluster.Model{Name: "gpu-12g", Memory: 12 << 10, Speed: 1})
	var rack int32
	for i := range small {
		if i%presetRackNodes == 0 {
			rack = c.AddRack(cluster.Rack{Name: fmt.Sprintf("rack%d", len(c.Racks))})
		}
		c.AddNode(cluster.Node{Name: fmt.Sprintf("node%d", large+i), Rack: rack, Model: model,
			CPU: 2 * cpuPerDevice, Memory: 2 * unit.MiB(memoryPerDevice)}, 2)
	}
	return c
}

// ResolveOptions are what Resolve needs from outside this package.
type ResolveOptions struct {
	// Openb reads the cluster of the openb trace from its folder.
	Openb func(folder string) (*cluster.Cluster, error)
	// Data is the folder of published data where it is looked for first, if not empty.
	Data string
	// Knows says of a model of device whether it will do, if not nil; Known lists those that do.
	Knows func(model string) bool
	Known []string
	// Sites is where the sites of a file go; where it is nil, a file that has some is refused.
	Sites *Sites
}

// Resolve returns the cluster that ref names: a preset, openb, or a cluster file.
func Resolve(ref string, options ResolveOptions) (*cluster.Cluster, error) {
	if c, ok, err := twoSites(ref, options); ok {
		return c, err
	}
	if c, ok, err := Preset(ref); ok {
		return c, err
	}
	if ref == "openb" {
		if options.Openb == nil {
			return nil, errors.New("cluster \"openb\": no reader of its trace is built in")
		}
		folder, err := openbFolder(options.Data)
		if err != nil {
			return nil, err
		}
		return options.Openb(folder)
	}
	data, err := ReadFile(ref)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cluster %q: no such file or preset; %s", ref,
			didYouMean(ref, []string{"gpus:NxM", "a100:NxM", "h100:NxM", "philly", "venus", "openb"}))
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster file: %w", err)
	}
	return clusterOf(ref, data, options)
}

// openbFolder finds the openb trace: in the folder given, under $MUSTER_DATA, else beside
// the repository.
func openbFolder(data string) (string, error) {
	var tried []string
	for _, data := range []string{data, os.Getenv("MUSTER_DATA")} {
		if data != "" {
			tried = append(tried, filepath.Join(data, "openb2023"))
		}
	}
	tried = append(tried, filepath.Join("..", "shared", "data", "openb2023"))
	for _, folder := range tried {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder, nil
		}
	}
	return "", fmt.Errorf("cluster \"openb\": its trace is at none of %s; set MUSTER_DATA to the folder that holds openb2023", strings.Join(tried, ", "))
}

// ReadFile reads no more of a file than it takes to see that it is too large; "-" is the standard input.
func ReadFile(path string) ([]byte, error) {
	f := os.Stdin
	if path != "-" {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}
