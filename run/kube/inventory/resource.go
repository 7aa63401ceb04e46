package inventory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"

	corev1 "k8s.io/api/core/v1"
)

// cpuOnly is the model of a node without devices.
const cpuOnly = "cpu"

// Names of NVIDIA's resources.
const (
	nvidiaGPU = "nvidia.com/gpu"
	nvidiaMIG = "nvidia.com/mig-"
)

// Resource says how an extended resource counts devices.
type Resource struct {
	// Name is the resource's name; one that ends in "*" matches every name that begins
	// so.
	Name string
	// Products and Memories are node labels with the model's name and the memory of one
	// device; the first present counts. Memory without a unit is in MiB.
	Products []string
	Memories []string
	// Model and Memory are what counts where no label tells; an empty Model is made of
	// the resource's name.
	Model  string
	Memory unit.MiB
}

const instanceType = "node.kubernetes.io/instance-type"

// known are the resources of the common device plugins. Resources that offer the
// same hardware a second time (aws.amazon.com/neuroncore beside neuron) or monitor
// it (gpu.intel.com/i915_monitoring) are left out on purpose.
var known = []Resource{
	{Name: nvidiaGPU, Products: []string{"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"}, Memories: []string{"nvidia.com/gpu.memory"}},
	{Name: "nvidia.com/gpu.shared", Products: []string{"nvidia.com/gpu.product"}, Memories: []string{"nvidia.com/gpu.memory"}},
	{Name: nvidiaMIG + "*"},
	{Name: "amd.com/gpu", Products: []string{"amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"},
		Memories: []string{"amd.com/gpu.vram", "beta.amd.com/gpu.vram"}},
	{Name: "gpu.intel.com/i915", Products: []string{"gpu.intel.com/product"}},
	{Name: "gpu.intel.com/xe", Products: []string{"gpu.intel.com/product"}},
	{Name: "google.com/tpu", Products: []string{"cloud.google.com/gke-tpu-accelerator"}},
	{Name: "aws.amazon.com/neuron", Products: []string{instanceType}},
	{Name: "habana.ai/gaudi", Products: []string{instanceType}},
}

// ParseResource reads a resource as a flag gives it: its name, then any of model,
// memory, product-label and memory-label:
// "example.com/npu,model=NPU-2,memory=32GiB,product-label=example.com/npu.name".
func ParseResource(s string) (Resource, error) {
	name, rest, _ := strings.Cut(s, ",")
	r := Resource{Name: name}
	if domain, base, ok := strings.Cut(name, "/"); !ok || domain == "" || base == "" {
		return r, fmt.Errorf("resource %q: expected a name like example.com/npu", name)
	}
	for rest != "" {
		var item string
		item, rest, _ = strings.Cut(rest, ",")
		key, value, _ := strings.Cut(item, "=")
		if value == "" {
			return r, fmt.Errorf("resource %q: %q: expected model=, memory=, product-label= or memory-label= with a value", name, item)
		}
		switch key {
		case "model":
			r.Model = value
		case "memory":
			m, err := unit.ParseMiB(value)
			if err != nil || m > mostMemory {
				return r, fmt.Errorf("resource %q: memory %q: expected an amount like 32GiB", name, value)
			}
			r.Memory = m
		case "product-label":
			r.Products = append(r.Products, value)
		case "memory-label":
			r.Memories = append(r.Memories, value)
		default:
			return r, fmt.Errorf("resource %q: unknown setting %q: expected model, memory, product-label or memory-label", name, key)
		}
	}
	return r, nil
}

// device returns how a resource counts devices, and false for one that does not.
func (r *Rules) device(name string) (Resource, bool) {
	for _, list := range [][]Resource{r.Resources, known} {
		for _, d := range list {
			prefix, open := strings.CutSuffix(d.Name, "*")
			if d.Name == name || open && strings.HasPrefix(name, prefix) && len(name) > len(prefix) {
				return d, true
			}
		}
	}
	return Resource{}, false
}

// model is the model that a resource's devices have on a node with these labels.
func (r *Rules) model(name string, d Resource, labels map[string]string) cluster.Model {
	product := first(labels, d.Products)
	memory, told := labelMemory(first(labels, d.Memories))
	if profile, ok := strings.CutPrefix(name, nvidiaMIG); ok {
		product, memory, told = migModel(name, profile, labels)
	}
	if product == "" {
		product = d.Model
	}
	if product == "" {
		product = strings.NewReplacer("/", "-", ".com", "").Replace(name)
	}
	if !told {
		memory = d.Memory
	}
	if topology := labels["cloud.google.com/gke-tpu-topology"]; name == "google.com/tpu" && topology != "" {
		// Slices of another shape are another machine: they do not stand in for each other.
		product += "-" + topology
	}
	product, memory = timeSliced(name, labels, product, memory)
	return r.named(tidy(product), memory)
}

// named is the model of this name at the speed that the rules give it.
func (r *Rules) named(name string, memory unit.MiB) cluster.Model {
	speed := r.Speeds[name]
	if speed <= 0 {
		speed = 1
	}
	return cluster.Model{Name: name, Memory: memory, Speed: speed}
}

// migModel is the model of a MIG profile under the mixed strategy: as labelled, or
// else made of the undivided device's label and the profile's name.
func migModel(name, profile string, labels map[string]string) (string, unit.MiB, bool) {
	product := labels[name+".product"]
	if product == "" {
		product = labels["nvidia.com/gpu.product"]
		if product == "" {
			product = "nvidia-gpu"
		}
		product += "-MIG-" + profile
	}
	if m, ok := labelMemory(labels[name+".memory"]); ok {
		return product, m, true
	}
	return product, profileMemory(profile), true
}

// profileMemory is the memory in a profile's name ("1c.3g.20gb"); 0 if there is none.
func profileMemory(profile string) unit.MiB {
	for part := range strings.SplitSeq(profile, ".") {
		if digits, ok := strings.CutSuffix(part, "gb"); ok {
			if gb, err := strconv.ParseInt(digits, 10, 32); err == nil && gb > 0 {
				return unit.MiB(gb) << 10
			}
		}
	}
	return 0
}

// timeSliced is the model of one replica where NVIDIA's plugin offers each device
// several times. A replica has its part of the memory and a name of its own, so that
// it never stands in for a whole device.
func timeSliced(name string, labels map[string]string, product string, memory unit.MiB) (string, unit.MiB) {
	if !strings.HasPrefix(name, "nvidia.com/") {
		return product, memory
	}
	prefix := strings.TrimSuffix(name, ".shared")
	replicas, err := strconv.ParseInt(labels[prefix+".replicas"], 10, 32)
	if err != nil || replicas <= 1 {
		return product, memory
	}
	if !strings.HasSuffix(product, "-SHARED") {
		product += "-SHARED"
	}
	return product, memory / unit.MiB(replicas)
}

func first(labels map[string]string, keys []string) string {
	for _, k := range keys {
		if v := labels[k]; v != "" {
			return v
		}
	}
	return ""
}

// labelMemory reads a label's memory: "81920" is in MiB, "192G" in GiB, as the
// labellers of NVIDIA and AMD write them.
func labelMemory(value string) (unit.MiB, bool) {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return unit.MiB(n), n > 0 && unit.MiB(n) <= mostMemory
	}
	if value != "" && strings.ContainsRune("KMGT", rune(value[len(value)-1])) {
		value += "iB"
	}
	m, err := unit.ParseMiB(value)
	return m, err == nil && m > 0 && m <= mostMemory
}

// tidy makes of a product's name what is the same from every source: GPU feature
// discovery writes "NVIDIA-A100-SXM4-40GB", HAMi "NVIDIA-NVIDIA A100-SXM4-40GB".
func tidy(product string) string {
	name := strings.Join(strings.Fields(product), "-")
	for strings.HasPrefix(name, "NVIDIA-NVIDIA-") {
		name = strings.TrimPrefix(name, "NVIDIA-")
	}
	return name
}

// out says why nothing new may start on a node; taints are left to the filter, since
// some pods tolerate them.
func out(n *corev1.Node) string {
	switch {
	case n.DeletionTimestamp != nil:
		return "the node is being deleted"
	case n.Spec.Unschedulable:
		return "the node is cordoned"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "the node is not ready"
}

// Counts reports whether Muster counts an extended resource itself: as devices, or as
// what a fraction plugin's annotations account for. The filter leaves it alone.
func (r Rules) Counts(name corev1.ResourceName) bool {
	_, ok := r.device(string(name))
	return ok || slices.Contains(IgnoredResources(), string(name))
}

// CountsDriver reports whether Muster counts the devices of a driver of dynamic
// resource allocation.
func (r Rules) CountsDriver(driver string) bool { return !r.ignores(driver) }
