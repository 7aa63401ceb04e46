package inventory

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

func (m *Machine) line() string {
	s := fmt.Sprintf("%s: %d x %s %v", m.Name, m.Count, m.Model.Name, m.Model.Memory)
	if m.Out != "" {
		s += " (" + m.Out + ")"
	}
	for i, d := range m.Devices {
		if d.Out != "" {
			s += fmt.Sprintf(" [%d: %s]", i, d.Out)
		}
	}
	return s
}

func lines(ms []Machine) string {
	var all []string
	for i := range ms {
		all = append(all, ms[i].line())
	}
	return strings.Join(all, "\n")
}

const hamiJSON = `[{"id":"GPU-a","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100-PCIE-32GB","numa":0,"mode":"hami-core","health":true},
{"id":"GPU-b","index":1,"count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-Tesla V100-PCIE-32GB","numa":1,"mode":"hami-core"}]`

func TestMachines(t *testing.T) {
	tables := []struct{ name, yaml, want string }{
		{"plain", node("a", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.memory: '81920'", "nvidia.com/gpu: '8'"),
			"a: 8 x NVIDIA-A100-SXM4-80GB 80GiB"},
		{"no devices", node("a", "", "pods: '110', rdma/hca: '4'"), "a: 0 x cpu 0MiB"},
		{"mig single", node("a", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb, nvidia.com/gpu.memory: '4864', nvidia.com/mig.strategy: single", "nvidia.com/gpu: '56'"),
			"a: 56 x NVIDIA-A100-SXM4-40GB-MIG-1g.5gb 4.75GiB"},
		{"mig mixed", node("a", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB, nvidia.com/gpu.memory: '40960', nvidia.com/mig-3g.20gb.product: NVIDIA-A100-SXM4-40GB-MIG-3g.20gb, nvidia.com/mig-3g.20gb.memory: '19968'",
			"nvidia.com/gpu: '4', nvidia.com/mig-1g.5gb: '7', nvidia.com/mig-3g.20gb: '2'"),
			"a: 4 x NVIDIA-A100-SXM4-40GB 40GiB\na/mig-1g.5gb: 7 x NVIDIA-A100-SXM4-40GB-MIG-1g.5gb 5GiB\na/mig-3g.20gb: 2 x NVIDIA-A100-SXM4-40GB-MIG-3g.20gb 19.5GiB"},
		{"time slicing", node("a", "nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.memory: '15360', nvidia.com/gpu.replicas: '4'", "nvidia.com/gpu: '8'"),
			"a: 8 x Tesla-T4-SHARED 3.75GiB"},
		{"amd", node("a", "amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM, amd.com/gpu.vram: 192G", "amd.com/gpu: '8'"), "a: 8 x AMD_Instinct_MI300X_OAM 192GiB"},
		{"intel", node("a", "gpu.intel.com/product: Flex_170", "gpu.intel.com/i915: '2', gpu.intel.com/i915_monitoring: '1'"), "a: 2 x Flex_170 0MiB"},
		{"tpu", node("a", "cloud.google.com/gke-tpu-accelerator: tpu-v5-lite-podslice, cloud.google.com/gke-tpu-topology: 2x4", "google.com/tpu: '4'"), "a: 4 x tpu-v5-lite-podslice-2x4 0MiB"},
		{"neuron once", node("a", "node.kubernetes.io/instance-type: trn1.32xlarge", "aws.amazon.com/neuron: '16', aws.amazon.com/neuroncore: '32'"), "a: 16 x trn1.32xlarge 0MiB"},
		{"configured", node("a", "", "example.com/npu: '2'"), "a: 2 x NPU-2 32GiB"},
		{"cordoned", "kind: Node\nmetadata: {name: a}\nspec: {unschedulable: true}\nstatus: {allocatable: {cpu: '1'}}", "a: 0 x cpu 0MiB (the node is cordoned)"},
		{"not ready", "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {nvidia.com/gpu: '1'}, conditions: [{type: Ready, status: Unknown}]}",
			"a: 1 x nvidia-gpu 0MiB (the node is not ready)"},
		{"plugin away", "kind: Node\nmetadata: {name: a}\nstatus: {capacity: {nvidia.com/gpu: '8', nvidia.com/mig-1g.5gb: '7'}, allocatable: {nvidia.com/gpu: '0', nvidia.com/mig-1g.5gb: '7'}, conditions: [{type: Ready, status: 'True'}]}",
			"a: 0 x nvidia-gpu 0MiB\na/mig-1g.5gb: 7 x nvidia-gpu-MIG-1g.5gb 5GiB"},
		{"hami", strings.Replace(node("a", "", "nvidia.com/gpu: '20'"), "labels: {}", "annotations: {hami.io/node-nvidia-register: '"+strings.ReplaceAll(hamiJSON, "\n", "")+"'}", 1),
			"a: 2 x NVIDIA-Tesla-V100-PCIE-32GB 32GiB [1: the device plugin reports it unhealthy]"},
		{"hami of old", strings.Replace(node("a", "", "nvidia.com/gpu: '20'"), "labels: {}",
			"annotations: {hami.io/device-cordon: 'GPU-b', hami.io/node-nvidia-register: 'GPU-a,10,32768,100,NVIDIA-NVIDIA A100,0,true:GPU-b,10,32768,100,NVIDIA-Tesla T4,0,true,1,hami-core:'}", 1),
			"a: 1 x NVIDIA-A100 32GiB\na/gpu: 1 x NVIDIA-Tesla-T4 32GiB [0: the device is cordoned by hami.io/device-cordon]"},
	}
	npu, err := ParseResource("example.com/npu,model=NPU-2,memory=32GiB")
	must(t, err)
	for _, c := range tables {
		t.Run(c.name, func(t *testing.T) {
			o := read(t, c.yaml)
			ms, problems := Rules{Resources: []Resource{npu}}.Machines(o.nodes, nil)
			if got := lines(ms); got != c.want || len(problems) > 0 {
				t.Errorf("got\n%s\nwant\n%s\nproblems %v", got, c.want, problems)
			}
		})
	}
}

func TestUnreadableNodes(t *testing.T) {
	tables := []struct{ yaml, want string }{
		{node("a", "", "nvidia.com/gpu: 1e18"), "node a: allocatable nvidia.com/gpu is 1E: expected a whole number, 0 to 10,000; taken as 0"},
		{node("a", "", "nvidia.com/gpu: 500m"), "expected a whole number"},
		{node("a", "", "nvidia.com/gpu: '-2'"), "expected a whole number"},
		{strings.Replace(node("a", "", ""), "256Gi", "9E", 1), "node a: allocatable memory is 9E: expected 0 to 1Pi"},
		{strings.Replace(node("a", "", ""), "'64'", "'-1'", 1), "expected 0 to 1,000,000 cores"},
		{node("a", "muster.dev/uplink: fast", ""), `node a: muster.dev/uplink "fast": expected a bandwidth like 25Gbps`},
		{strings.Replace(node("a", "", "nvidia.com/gpu: 2"), "labels: {}", "annotations: {hami.io/node-nvidia-register: '[{'}", 1), "expected a JSON list"},
		{strings.Replace(node("a", "", "nvidia.com/gpu: 2"), "labels: {}", "annotations: {hami.io/node-nvidia-register: 'x,y:'}", 1), `"x,y": expected uuid,count,MiB`},
	}
	for _, c := range tables {
		ms, problems := Rules{}.Machines(read(t, c.yaml).nodes, nil)
		if len(problems) != 1 || !strings.Contains(problems[0].Text, c.want) || ms[0].Count != 0 {
			t.Errorf("got %v, %s; want %q", problems, lines(ms), c.want)
		}
	}
}

func TestParseResource(t *testing.T) {
	r, err := ParseResource("example.com/npu,product-label=example.com/name,memory-label=example.com/mem,memory=8GiB,model=N")
	if err != nil || r.Products[0] != "example.com/name" || r.Memories[0] != "example.com/mem" || r.Memory != 8<<10 || r.Model != "N" {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, s := range []string{"", "npu", "/npu", "example.com/npu,memory=many", "example.com/npu,size=3", "example.com/npu,model"} {
		if _, err := ParseResource(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

func TestRackLabel(t *testing.T) {
	label := func(i int, format string, size int) string { return fmt.Sprintf(format, i/size) }
	build := func(labels ...func(i int) string) *objects {
		var docs []string
		for i := range 8 {
			var l []string
			for _, f := range labels {
				if s := f(i); s != "" {
					l = append(l, s)
				}
			}
			docs = append(docs, node(fmt.Sprintf("n%d", i), strings.Join(l, ", "), ""))
		}
		return read(t, docs...)
	}
	zone := func(i int) string { return label(i, "topology.kubernetes.io/zone: z%d", 4) }
	rack := func(i int) string { return fmt.Sprintf("topology.kubernetes.io/rack: r%d", i%4/2) }
	host := func(i int) string { return label(i, "topology.k8s.aws/network-node-layer-3: h%d", 1) }
	few := func(i int) string {
		if i < 2 {
			return "nvidia.com/gpu.clique: c"
		}
		return ""
	}
	clique := func(i int) string {
		if i == 7 {
			return ""
		}
		return label(i, "nvidia.com/gpu.clique: c%d", 4)
	}
	tables := []struct {
		name  string
		got   *objects
		rules Rules
		want  string
		racks string // of the first, third, fifth and last node
	}{
		{"none", build(), Rules{}, "", "all all all all"},
		{"zone", build(zone), Rules{}, zoneLabel, "z0 z0 z1 z1"},
		{"rack in zone", build(zone, rack), Rules{}, "topology.kubernetes.io/rack", "z0/r0 z0/r1 z1/r0 z1/r1"},
		{"one node each is no rack", build(zone, host), Rules{}, zoneLabel, "z0 z0 z1 z1"},
		{"two of eight", build(zone, few), Rules{}, zoneLabel, "z0 z0 z1 z1"},
		{"nvlink", build(zone, rack, clique), Rules{}, "nvidia.com/gpu.clique", "z0/c0 z0/c0 z1/c1 z1/unlabelled"},
		{"configured", build(zone, rack, clique), Rules{RackLabels: []string{zoneLabel}}, zoneLabel, "z0 z0 z1 z1"},
	}
	for _, c := range tables {
		ms, _ := c.rules.Machines(c.got.nodes, nil)
		racks := strings.Join([]string{ms[0].Rack, ms[2].Rack, ms[4].Rack, ms[7].Rack}, " ")
		if got := c.rules.RackLabel(c.got.nodes); got != c.want || racks != c.racks {
			t.Errorf("%s: got %q (%s), want %q (%s)", c.name, got, racks, c.want, c.racks)
		}
	}
}

// TestDevicesAddUp: what machines count is what the node can allocate, and no
// machine's devices are another's.
func TestDevicesAddUp(t *testing.T) {
	names := []string{"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb", "amd.com/gpu", "google.com/tpu", "rdma/hca"}
	draws.Check(t, func(t *rapid.T) {
		n := &corev1.Node{}
		n.Name = "n"
		n.Status.Allocatable = corev1.ResourceList{}
		want := int64(0)
		for _, name := range names {
			count := rapid.Int64Range(0, 16).Draw(t, name)
			if rapid.Bool().Draw(t, "has") {
				n.Status.Allocatable[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
				if name != "rdma/hca" {
					want += count
				}
			}
		}
		ms, problems := Rules{}.Machines([]*corev1.Node{n}, nil)
		got, plain := int64(0), 0
		for _, m := range ms {
			got += int64(m.Count)
			if m.Name == "n" {
				plain++
			}
		}
		if got != want || plain != 1 || len(problems) > 0 {
			t.Fatalf("%s\nhave %d devices, the node %d; %v", lines(ms), got, want, problems)
		}
	})
}

// TestMachinesNeverPanic reads nodes of garbage.
func TestMachinesNeverPanic(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		n := &corev1.Node{}
		n.Name = rapid.String().Draw(t, "name")
		n.Labels = rapid.MapOf(rapid.SampledFrom([]string{"nvidia.com/gpu.product", "nvidia.com/gpu.memory", "nvidia.com/gpu.replicas", "amd.com/gpu.vram", "nvidia.com/mig-1g.memory"}), garbage()).Draw(t, "labels")
		n.Annotations = map[string]string{}
		if rapid.Bool().Draw(t, "registered") {
			n.Annotations[hamiRegister] = garbage().Draw(t, "register")
		}
		n.Annotations[uplinkName] = garbage().Draw(t, "uplink")
		n.Status.Allocatable = quantities(t, "cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-", "nvidia.com/mig-1g", "amd.com/gpu")
		ms, _ := Rules{}.Machines([]*corev1.Node{n}, nil)
		if c, err := Cluster(ms, nil); err != nil || len(c.Nodes) != len(ms) {
			t.Fatalf("%v", err)
		}
		for _, m := range ms {
			if m.Count < 0 || m.Count > mostDevices || m.CPU < 0 || m.CPU > mostCPU || m.Memory < 0 || m.Memory > mostMemory || m.Model.Memory > mostMemory || m.Model.Memory < 0 {
				t.Fatalf("%+v", m)
			}
		}
	})
}

func garbage() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "G", "-1", "9223372036854775807", "[{\"id\":\"a\",\"count\":-5,\"devmem\":99999999999999}]",
		"[null]", "a,1,2,3,T,0,true:", "a,b,c,d,e,f,g", ",,,,,,:", "80G", "1e18"}))
}

func quantities(t *rapid.T, names ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range names {
		if text := rapid.SampledFrom([]string{"", "0", "1", "2", "-1", "500m", "1n", "1e18", "9E", "-9E", "1Pi", "1e-9", "9223372036854775807", "1000000000E", "3000"}).Draw(t, name); text != "" {
			list[corev1.ResourceName(name)] = resource.MustParse(text)
		}
	}
	return list
}
