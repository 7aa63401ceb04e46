package inventory

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

func (n *Need) line() string {
	return fmt.Sprintf("cpu %v host %v devices %d share %v memory %v of %s", n.CPU, n.HostMemory, n.Devices, n.Share, n.Memory, strings.Join(n.Models, ","))
}

func hamiNodeYAML(name, model string, memory int) string {
	reg := fmt.Sprintf(`[{"id":"%[1]s-0","count":10,"devmem":%[3]d,"type":"%[2]s","health":true},{"id":"%[1]s-1","count":10,"devmem":%[3]d,"type":"%[2]s","health":true}]`, name, model, memory)
	return strings.Replace(node(name, "", "nvidia.com/gpu: '20'"), "labels: {}", "annotations: {hami.io/node-nvidia-register: '"+reg+"'}", 1)
}

func TestAsk(t *testing.T) {
	gpus := node("a", "nvidia.com/gpu.product: A100, nvidia.com/gpu.memory: '40960'", "nvidia.com/gpu: 4, nvidia.com/mig-1g.5gb: 7") +
		"---\n" + node("b", "nvidia.com/gpu.product: H100", "nvidia.com/gpu: 8")
	fractions := hamiNodeYAML("a", "NVIDIA-T4", 16000) + "---\n" + hamiNodeYAML("b", "NVIDIA-V100", 32000) + "---\n" + hamiNodeYAML("c", "NVIDIA-V100", 32000)
	containers := func(init, main, second string) string {
		return fmt.Sprintf("kind: Pod\nmetadata: {name: p}\nspec:\n  initContainers:\n  - {name: i, resources: {requests: {%s}}}\n  containers:\n  - {name: c, resources: {requests: {%s}}}\n  - {name: d, resources: {requests: {%s}}}\n", init, main, second)
	}
	tables := []struct{ name, nodes, pod, want string }{
		{"cpu only", gpus, pod("cpu: 1500m, memory: 1Gi, ephemeral-storage: 1Gi, rdma/hca: 1"), "cpu 1500m host 1GiB devices 0 share 1 memory 0MiB of "},
		{"nothing", gpus, pod(""), "cpu 0 host 0MiB devices 0 share 1 memory 0MiB of "},
		{"either model", gpus, pod("cpu: 1n, memory: '1', nvidia.com/gpu: 2"), "cpu 1m host 1MiB devices 2 share 1 memory 0MiB of A100,H100"},
		{"mig", gpus, pod("nvidia.com/mig-1g.5gb: 2"), "cpu 0 host 0MiB devices 2 share 1 memory 0MiB of A100-MIG-1g.5gb"},
		{"limits only", gpus, strings.Replace(pod("nvidia.com/gpu: 1, cpu: 2"), "requests", "limits", 1), "cpu 2 host 0MiB devices 1 share 1 memory 0MiB of A100,H100"},
		{"init, sidecar, overhead", gpus, `
kind: Pod
spec:
  overhead: {cpu: 250m, memory: 64Mi}
  initContainers:
  - {name: s, restartPolicy: Always, resources: {requests: {cpu: 1, memory: 1Gi}}}
  - {name: i, resources: {requests: {cpu: 8, nvidia.com/gpu: 2}}}
  containers:
  - {name: c, resources: {requests: {cpu: 2, memory: 2Gi, nvidia.com/gpu: 1}}}
`, "cpu 9250m host 3.06GiB devices 2 share 1 memory 0MiB of A100,H100"},
		{"two containers", gpus, containers("", "nvidia.com/gpu: 1", "nvidia.com/gpu: 2"), "cpu 0 host 0MiB devices 3 share 1 memory 0MiB of A100,H100"},
		{"fraction", fractions, pod("nvidia.com/gpu: 1, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30"), "cpu 0 host 0MiB devices 1 share 300m memory 2.93GiB of NVIDIA-T4,NVIDIA-V100"},
		{"memory only takes a slot", fractions, pod("nvidia.com/gpu: 1, nvidia.com/gpumem: 1024"), "cpu 0 host 0MiB devices 1 share 100m memory 1GiB of NVIDIA-T4,NVIDIA-V100"},
		{"percent is of one size", fractions, pod("nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50"), "cpu 0 host 0MiB devices 1 share 500m memory 15.62GiB of NVIDIA-V100"},
		{"percent of the chosen type", fractions, strings.Replace(pod("nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 50"), "namespace: ns", "annotations: {nvidia.com/use-gputype: 't4, A30'}", 1), "cpu 0 host 0MiB devices 1 share 500m memory 7.81GiB of NVIDIA-T4"},
		{"not that type", fractions, strings.Replace(pod("nvidia.com/gpu: 1, nvidia.com/gpumem: 1024"), "namespace: ns", "annotations: {nvidia.com/nouse-gputype: 't4'}", 1), "cpu 0 host 0MiB devices 1 share 100m memory 1GiB of NVIDIA-V100"},
		{"whole beside fractions", gpus + "---\n" + fractions, pod("nvidia.com/gpu: 2"), "cpu 0 host 0MiB devices 2 share 1 memory 0MiB of A100,H100,NVIDIA-T4,NVIDIA-V100"},
		{"all cores", fractions, pod("nvidia.com/gpu: 1, nvidia.com/gpumem: 1024, nvidia.com/gpucores: 100"), "cpu 0 host 0MiB devices 1 share 1 memory 0MiB of NVIDIA-T4,NVIDIA-V100"},
		{"two containers share", fractions, containers("", "nvidia.com/gpu: 1, nvidia.com/gpumem: 1024, nvidia.com/gpucores: 50", "nvidia.com/gpu: 1, nvidia.com/gpumem: 2048, nvidia.com/gpucores: 50"), "cpu 0 host 0MiB devices 1 share 1 memory 3GiB of NVIDIA-T4,NVIDIA-V100"},
		{"init wants more memory", fractions, containers("nvidia.com/gpu: 1, nvidia.com/gpumem: 4096, nvidia.com/gpucores: 10", "nvidia.com/gpu: 1, nvidia.com/gpumem: 1024, nvidia.com/gpucores: 50", ""), "cpu 0 host 0MiB devices 1 share 500m memory 4GiB of NVIDIA-T4,NVIDIA-V100"},
		{"fractions of two devices are whole", fractions, pod("nvidia.com/gpu: 2, nvidia.com/gpumem: 1024"), "cpu 0 host 0MiB devices 2 share 1 memory 1GiB of NVIDIA-T4,NVIDIA-V100"},
	}
	for _, c := range tables {
		t.Run(c.name, func(t *testing.T) {
			o := read(t, c.nodes, c.pod)
			n, p := o.reader(Rules{}).Ask(o.pods[0], o)
			if got := n.line(); got != c.want || !p.None() {
				t.Errorf("got  %s\nwant %s\n%v", got, c.want, p)
			}
		})
	}
}

func TestAskRefuses(t *testing.T) {
	nodes := node("a", "nvidia.com/gpu.product: A100", "nvidia.com/gpu: 4, nvidia.com/mig-1g.5gb: 7, amd.com/gpu: 1")
	tables := []struct {
		pod, want string
		later     bool
	}{
		{pod("nvidia.com/gpu: 1500m"), "container main: nvidia.com/gpu is 1500m: expected a whole number, 0 to 10,000", false},
		{pod("nvidia.com/gpu: 1e18"), "container main: nvidia.com/gpu is 1E: expected a whole number", false},
		{pod("nvidia.com/gpu: -1"), "container main: nvidia.com/gpu is -1: expected", false},
		{pod("cpu: 1e18"), "container main: cpu is 1E: expected 0 to 1,000,000 cores", false},
		{pod("memory: 8E"), "container main: memory is 8E: expected 0 to 1Pi", false},
		{pod("example.com/dongle: -1"), "container main: example.com/dongle is -1: expected 0 or more", false},
		{strings.Replace(pod("cpu: -1"), "requests", "limits", 1), "container main: cpu is -1", false},
		{strings.Replace(pod(""), "containers:", "overhead: {memory: 2Pi}\n  containers:", 1), "the pod's overhead: memory is 2Pi", false},
		{pod("google.com/tpu: 4"), "no node offers google.com/tpu", true},
		{pod("nvidia.com/gpu: 1, amd.com/gpu: 1"), "the pod asks for amd.com/gpu and for nvidia.com/gpu: expected one kind of device per pod", false},
		{pod("nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 1"), "expected one kind of device per pod", false},
		{pod("nvidia.com/gpu: 1, nvidia.com/gpumem: 100"), "no node gives out fractions", true},
		{pod("nvidia.com/gpumem: 100"), "ask for nvidia.com/gpu too", false},
		{pod("nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 101"), "container main: nvidia.com/gpumem-percentage is 101: expected a whole number, 0 to 100", false},
		{pod("nvidia.com/gpu: 1, nvidia.com/gpumem: 10E"), "container main: nvidia.com/gpumem is 10E: expected", false},
	}
	for _, c := range tables {
		o := read(t, nodes, c.pod)
		n, p := o.reader(Rules{}).Ask(o.pods[0], o)
		if !strings.Contains(p.Text, c.want) || p.Later != c.later {
			t.Errorf("got %+v %s; want %q", p, n.line(), c.want)
		}
	}
}

// TestAskNeverPanics reads pods of garbage: what is not refused is within bounds.
func TestAskNeverPanics(t *testing.T) {
	o := read(t, node("a", "nvidia.com/gpu.product: A100", "nvidia.com/gpu: 4, nvidia.com/mig-1g.5gb: 7"), hamiNodeYAML("b", "NVIDIA-T4", 16000))
	r := o.reader(Rules{MemoryFactor: 256})
	ms := r.machines
	names := []string{"cpu", "memory", "nvidia.com/gpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", gpuMemory, gpuPercent, gpuCores, "x/y"}
	draws.Check(t, func(t *rapid.T) {
		p := &corev1.Pod{}
		always := corev1.ContainerRestartPolicyAlways
		for i := range rapid.IntRange(0, 3).Draw(t, "containers") {
			c := corev1.Container{Name: fmt.Sprint("c", i)}
			c.Resources.Requests = quantities(t, names...)
			c.Resources.Limits = quantities(t, names...)
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				p.Spec.InitContainers = append(p.Spec.InitContainers, c)
			case 1:
				c.RestartPolicy = &always
				p.Spec.InitContainers = append(p.Spec.InitContainers, c)
			default:
				p.Spec.Containers = append(p.Spec.Containers, c)
			}
		}
		p.Annotations = map[string]string{hamiGiven: rapid.StringMatching(`((b-[01],NVIDIA,-?\d{1,12},\d{1,3}|[,:;a]+)[:;])*`).Draw(t, "given"), useType: garbage().Draw(t, "use")}
		p.Spec.NodeName = rapid.SampledFrom([]string{"", "a", "b", "gone"}).Draw(t, "node")
		for name, u := range r.Occupied([]*corev1.Pod{p}, o) {
			if u.CPU < 0 || u.Memory < 0 || u.Somewhere < 0 || u.CPU > 10*mostCPU || u.Memory > 10*mostMemory {
				t.Fatalf("%s: %+v", name, u)
			}
		}
		for i := range ms {
			_, _ = r.rules.BindAnnotations(ms[i], p, []int{0}, 0)
		}
		n, problem := r.Ask(p, o)
		if !problem.None() {
			return
		}
		ok := n.CPU >= 0 && n.CPU <= mostCPU && n.HostMemory >= 0 && n.HostMemory <= mostMemory && n.Memory >= 0 && n.Memory <= mostMemory &&
			n.Devices >= 0 && n.Devices <= mostDevices && n.Share > 0 && n.Share <= 1000 && (n.Share == 1000 || n.Devices == 1) && (n.Devices == 0) == (len(n.Models) == 0)
		if !ok {
			t.Fatalf("%+v", n)
		}
	})
}
