package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

func sliceYAML(name, spec, devices string) string {
	return "kind: ResourceSlice\nmetadata: {name: " + name + "}\nspec:\n  " + spec + "\n" + devices
}

func inPool(count int) string {
	return fmt.Sprintf("driver: gpu.nvidia.com\n  nodeName: a\n  pool: {name: a, generation: 2, resourceSliceCount: %d}", count)
}

// dividable is the slices of a node with GPUs that can be had whole, as two halves of
// 3/7 of the compute and half of the memory, or as seven small parts.
func dividable(gpus int) string {
	sets := "  sharedCounters:\n"
	devices := "  devices:\n"
	for g := range gpus {
		sets += fmt.Sprintf("  - {name: gpu-%d, counters: {memory: {value: 40Gi}, sms: {value: '98'}}}\n", g)
		part := func(name, attributes string, memory, sms int) {
			devices += fmt.Sprintf("  - {name: %s, attributes: {productName: {string: NVIDIA A100}, uuid: {string: U-%s}, %s}, capacity: {memory: {value: %dGi}}, consumesCounters: [{counterSet: gpu-%d, counters: {memory: {value: %dGi}, sms: {value: '%d'}}}]}\n",
				name, name, attributes, memory, g, memory, sms)
		}
		for i := range 7 {
			part(fmt.Sprintf("gpu-%d-mig-1g-%d", g, i), "type: {string: mig}, profile: {string: 1g.5gb}", 5, 14)
		}
		for i := range 2 {
			part(fmt.Sprintf("gpu-%d-mig-3g-%d", g, i), "type: {string: mig}, profile: {string: 3g.20gb}", 20, 42)
		}
		part(fmt.Sprintf("gpu-%d", g), fmt.Sprintf("type: {string: gpu}, numa: {int: %d}, resource.kubernetes.io/pcieRoot: {string: 'pci0000:%02d'}", g%2, g), 40, 98)
	}
	return sliceYAML("s1", inPool(2), devices) + "---\n" + sliceYAML("s2", inPool(2), sets)
}

const classes = `
---
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]
---
kind: DeviceClass
metadata: {name: mig.nvidia.com}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"}}]}
---
kind: DeviceClass
metadata: {name: any}
---
kind: DeviceClass
metadata: {name: nic}
spec: {selectors: [{cel: {expression: "device.driver == 'dra.net'"}}]}
---
kind: DeviceClass
metadata: {name: tpu}
spec: {selectors: [{cel: {expression: "device.driver == 'tpu.google.com'"}}]}
---
kind: DeviceClass
metadata: {name: bad}
spec: {selectors: [{cel: {expression: "device.("}}]}
---
`

// shareable is a node with a device that several may have parts of.
const shareable = `
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: vgpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices:
  - name: d0
    allowMultipleAllocations: true
    attributes: {model: {string: V}}
    capacity:
      memory: {value: 80Gi, requestPolicy: {default: 8Gi, validRange: {min: 8Gi, step: 8Gi, max: 80Gi}}}
      cores: {value: '100', requestPolicy: {default: '10', validValues: ['10', '25', '50', '100']}}
`

func TestSlices(t *testing.T) {
	bare := node("a", "", "")
	gpu := "  - {name: g0, attributes: {model: {string: X}}}\n"
	tables := []struct{ name, yaml, want, problem string }{
		{"divided are counted once", bare + "---\n" + dividable(3), "a: 3 x NVIDIA-A100 40GiB", ""},
		{"beside a plugin", node("a", "", "amd.com/gpu: 2") + "---\n" + dividable(1), "a: 2 x amd-gpu 0MiB\na/gpu.nvidia.com: 1 x NVIDIA-A100 40GiB", ""},
		{"two models", bare + "---\n" + sliceYAML("s", inPool(1), "  devices:\n"+gpu+"  - {name: g1}\n  - {name: g2}\n"), "a: 1 x X 0MiB\na/gpu.nvidia.com: 2 x gpu.nvidia.com 0MiB", ""},
		{"older generations", bare + "---\n" + sliceYAML("s", inPool(1), "  devices:\n"+gpu) + "---\n" + strings.Replace(sliceYAML("old", inPool(1), "  devices:\n"+gpu+"  - {name: g1}\n"), "generation: 2", "generation: 1", 1), "a: 1 x X 0MiB", ""},
		{"incomplete", bare + "---\n" + sliceYAML("s", inPool(2), "  devices:\n"+gpu), "a: 0 x cpu 0MiB", "1 of 2 resource slices are there"},
		{"of the network", bare + "---\n" + strings.Replace(sliceYAML("s", inPool(1), "  devices:\n"+gpu), "nodeName: a", "allNodes: true", 1), "a: 0 x cpu 0MiB", "1 devices belong to no single node"},
		{"node per device", bare + "---\n" + strings.Replace(sliceYAML("s", inPool(1), "  devices:\n  - {name: g0, nodeName: a}\n  - {name: g1, nodeName: b}\n"), "nodeName: a", "perDeviceNodeSelection: true", 1), "a: 1 x gpu.nvidia.com 0MiB", ""},
		{"ignored driver", bare + "---\n" + strings.Replace(sliceYAML("s", inPool(1), "  devices:\n"+gpu), "gpu.nvidia.com", "compute-domain.nvidia.com", 1), "a: 0 x cpu 0MiB", ""},
		{"taint", bare + "---\n" + sliceYAML("s", inPool(1), "  devices:\n  - {name: g0, taints: [{key: broken, effect: NoSchedule}, {key: b, effect: None}]}\n"), "a: 1 x gpu.nvidia.com 0MiB [0: the device has the taint broken:NoSchedule]", ""},
		{"counters that are not there", bare + "---\n" + sliceYAML("s", inPool(1), "  devices:\n  - {name: g0, consumesCounters: [{counterSet: none, counters: {x: {value: '1'}}}]}\n"), "a: 0 x cpu 0MiB", ""},
		{"fixed parts are counted each", bare + "---\n" + sliceYAML("s1", inPool(2), "  sharedCounters:\n  - {name: c, counters: {sms: {value: '98'}}}\n") + "---\n" +
			sliceYAML("s2", inPool(2), "  devices:\n  - {name: p0, attributes: {model: {string: X}, profile: {string: 3g}}, consumesCounters: [{counterSet: c, counters: {sms: {value: '42'}}}]}\n  - {name: p1, attributes: {model: {string: X}, profile: {string: 3g}}, consumesCounters: [{counterSet: c, counters: {sms: {value: '42'}}}]}\n  - {name: p2, attributes: {model: {string: X}, profile: {string: 1g}}, consumesCounters: [{counterSet: c, counters: {sms: {value: '14'}}}]}\n"),
			"a: 2 x X-MIG-3g 0MiB\na/gpu.nvidia.com: 1 x X-MIG-1g 0MiB", ""},
	}
	for _, c := range tables {
		t.Run(c.name, func(t *testing.T) {
			o := read(t, c.yaml)
			ms, problems := Rules{}.Machines(o.nodes, o.slices)
			said := ""
			for _, p := range problems {
				said += p.Text
			}
			if got := lines(ms); got != c.want || !strings.Contains(said, c.problem) || (said == "") != (c.problem == "") {
				t.Errorf("got\n%s\nwant\n%s\nproblems %q, want %q", got, c.want, said, c.problem)
			}
		})
	}
}

func TestDeviceFacts(t *testing.T) {
	o := read(t, node("a", "", ""), dividable(12))
	ms, _ := Rules{}.Machines(o.nodes, o.slices)
	d := ms[0].Devices[10] // in the order of numbers, not of letters
	if d.Name != "gpu-10" || d.UUID != "U-gpu-10" || d.NUMA != 0 || d.PCIRoot != "pci0000:10" || d.Pool != "a" {
		t.Errorf("got %+v", d)
	}
	got := ""
	for _, p := range ms[0].Parts {
		got += fmt.Sprintf("%s %v %v; ", p.Name, p.Milli, p.Memory)
	}
	if want := "NVIDIA-A100-MIG-1g.5gb 142m 5GiB; NVIDIA-A100-MIG-3g.20gb 500m 20GiB; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// claiming is a pod with claims of one template, whose device requests are given.
func claiming(requests string) string {
	return "kind: ResourceClaimTemplate\nmetadata: {name: t, namespace: ns}\nspec: {spec: {devices: {requests: [" + requests + "]}}}\n---\n" +
		"kind: Pod\nmetadata: {name: p, namespace: ns}\nspec: {resourceClaims: [{name: dev, resourceClaimTemplateName: t}], containers: [{name: main}]}\n"
}

func TestClaims(t *testing.T) {
	gpus := node("a", "", "") + "---\n" + dividable(2) + classes
	tables := []struct{ name, nodes, pod, want string }{
		{"one", gpus, claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com}}"), "devices 1 share 1 memory 0MiB of NVIDIA-A100"},
		{"exactly", gpus, claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 2}}"), "devices 2 share 1 memory 0MiB of NVIDIA-A100"},
		{"two requests", gpus, claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com}}, {name: s, exactly: {deviceClassName: any, count: 2}}"), "devices 3 share 1 memory 0MiB of NVIDIA-A100"},
		{"first alternative", gpus, claiming("{name: r, firstAvailable: [{name: x, deviceClassName: gpu.nvidia.com, count: 2}, {name: y, deviceClassName: mig.nvidia.com}]}"), "devices 2 share 1 memory 0MiB of NVIDIA-A100"},
		{"a profile", gpus, claiming("{name: r, exactly: {deviceClassName: mig.nvidia.com, selectors: [{cel: {expression: \"device.attributes['gpu.nvidia.com'].profile == '1g.5gb'\"}}]}}"), "devices 1 share 142m memory 5GiB of NVIDIA-A100"},
		{"three of a profile", gpus, claiming("{name: r, exactly: {deviceClassName: mig.nvidia.com, count: 3, selectors: [{cel: {expression: \"device.attributes['gpu.nvidia.com'].profile == '1g.5gb'\"}}]}}"), "devices 1 share 426m memory 15GiB of NVIDIA-A100"},
		{"any profile is the largest", gpus, claiming("{name: r, exactly: {deviceClassName: mig.nvidia.com}}"), "devices 1 share 500m memory 20GiB of NVIDIA-A100"},
		{"one device by name", gpus, claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: \"device.attributes['gpu.nvidia.com'].uuid == 'U-gpu-1'\"}}]}}"), "devices 1 share 1 memory 0MiB of NVIDIA-A100"},
		{"admin", gpus, claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, adminAccess: true}}"), "devices 0 share 1 memory 0MiB of "},
		{"network beside", gpus, claiming("{name: n, exactly: {deviceClassName: nic}}, {name: r, exactly: {deviceClassName: gpu.nvidia.com}}"), "devices 1 share 1 memory 0MiB of NVIDIA-A100"},
		{"as a resource", gpus, pod("example.com/gpu: 2"), "devices 2 share 1 memory 0MiB of NVIDIA-A100"},
		{"as the class's resource", gpus, pod("deviceclass.resource.kubernetes.io/gpu.nvidia.com: 1"), "devices 1 share 1 memory 0MiB of NVIDIA-A100"},
		{"capacity by default", node("a", "", "") + "---\n" + shareable + classes, claiming("{name: r, exactly: {deviceClassName: any}}"), "devices 1 share 100m memory 8GiB of V"},
		{"capacity rounded up", node("a", "", "") + "---\n" + shareable + classes, claiming("{name: r, exactly: {deviceClassName: any, capacity: {requests: {memory: 9Gi, cores: '11'}}}}"), "devices 1 share 250m memory 16GiB of V"},
		{"all of it", node("a", "", "") + "---\n" + shareable + classes, claiming("{name: r, exactly: {deviceClassName: any, capacity: {requests: {vgpu.example.com/cores: '100'}}}}"), "devices 1 share 1 memory 0MiB of V"},
		{"held by an earlier pod", gpus, `
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}]}}
status: {allocation: {devices: {}}, reservedFor: [{resource: pods, name: q, uid: u}]}
---
kind: Pod
metadata: {name: p, namespace: ns}
spec: {resourceClaims: [{name: dev, resourceClaimName: c}], containers: [{name: main}]}
`, "devices 0 share 1 memory 0MiB of "},
	}
	for _, c := range tables {
		t.Run(c.name, func(t *testing.T) {
			o := read(t, c.nodes, c.pod)
			n, p := o.reader(Rules{}).Ask(o.pods[0], o)
			if got := n.line(); !strings.HasSuffix(got, c.want) || !p.None() {
				t.Errorf("got %s, want %s; %v", got, c.want, p)
			}
		})
	}
}

func TestClaimsRefused(t *testing.T) {
	nodes := node("a", "", "nvidia.com/gpu: 1") + "---\n" + dividable(1) + classes
	tables := []struct {
		pod, want string
		later     bool
	}{
		{claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}}"), "claim dev, request r: allocationMode All", false},
		{claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: Some}}"), `allocationMode "Some": expected ExactCount`, false},
		{claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: -1}}"), "count is -1: expected 1 to 10,000", false},
		{claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 9000000000000000000}}"), "expected 1 to 10,000", false},
		{claiming("{name: r, exactly: {deviceClassName: none}}"), "there is no DeviceClass none", true},
		{claiming("{name: r, exactly: {deviceClassName: tpu}}"), "no node has a device of DeviceClass tpu", true},
		{claiming("{name: r, exactly: {deviceClassName: bad}}"), `selector "device.("`, false},
		{claiming("{name: r}"), "expected exactly or firstAvailable", false},
		{claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, capacity: {requests: {memory: 41Gi}}}}"), "no device has the capacity", true},
		{claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com, capacity: {requests: {memory: -1}}}}"), "no device has the capacity", true},
		{strings.Replace(claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com}}"), "[{name: main}]", "[{name: main, resources: {requests: {nvidia.com/gpu: 1}}}]", 1), "expected one kind of device per pod", false},
		{strings.Replace(claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com}}"), "Name: t}", "Name: u}", 1), "there is no ResourceClaimTemplate u", true},
		{strings.Replace(claiming("{name: r, exactly: {deviceClassName: gpu.nvidia.com}}"), "resourceClaimTemplateName: t", "resourceClaimName: t", 1), "there is no ResourceClaim t", true},
		{strings.Replace(claiming(""), ", resourceClaimTemplateName: t", "", 1), "expected resourceClaimName or", false},
	}
	for _, c := range tables {
		o := read(t, nodes, c.pod)
		n, p := o.reader(Rules{}).Ask(o.pods[0], o)
		if !strings.Contains(p.Text, c.want) || p.Later != c.later {
			t.Errorf("got %+v %s; want %q", p, n.line(), c.want)
		}
	}
}

func TestBindAnnotations(t *testing.T) {
	o := read(t, hamiNodeYAML("a", "NVIDIA-T4", 16000), `
kind: Pod
metadata: {name: p, namespace: ns}
spec:
  initContainers:
  - {name: i, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 500}}}
  containers:
  - {name: a, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 3000, nvidia.com/gpucores: 30}}}
  - {name: none}
  - {name: b, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 25}}}
`)
	ms, _ := Rules{}.Machines(o.nodes, nil)
	for _, c := range []struct {
		devices []int
		want    string
	}{
		{[]int{1}, "a-1,NVIDIA,500,0:;a-1,NVIDIA,3000,30:;;a-1,NVIDIA,4000,0:;"},
		{[]int{1, 0}, "a-1,NVIDIA,500,0:;a-1,NVIDIA,3000,30:;;a-0,NVIDIA,4000,0:;"},
	} {
		got, p := Rules{}.BindAnnotations(ms[0], o.pods[0], c.devices, unit.Time(1705054796*unit.Second))
		want := map[string]string{"hami.io/vgpu-devices-to-allocate": c.want, "hami.io/vgpu-devices-allocated": c.want, "hami.io/vgpu-node": "a",
			"hami.io/vgpu-time": "1705054796", "hami.io/bind-time": "1705054796", "hami.io/bind-phase": "allocating"}
		if fmt.Sprint(got) != fmt.Sprint(want) || !p.None() {
			t.Errorf("got %v %v, want %v", got, p, want)
		}
	}
	for _, devices := range [][]int{{2}, {-1}, {}} {
		if got, p := (Rules{}).BindAnnotations(ms[0], o.pods[0], devices, 0); p.None() || got != nil {
			t.Errorf("devices %v were taken: %v", devices, got)
		}
	}
}

func TestOccupied(t *testing.T) {
	tables := []struct{ name, yaml, want string }{
		{"counts and ends", node("a", "", "nvidia.com/gpu: 4, nvidia.com/mig-1g.5gb: 7") + `---
kind: Pod
metadata: {name: p}
spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: 2, memory: 1Gi, nvidia.com/mig-1g.5gb: 2}}}]}
---
kind: Pod
metadata: {name: daemon}
spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: 100m}}}]}
---
kind: Pod
metadata: {name: ended}
spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: 5, nvidia.com/gpu: 1}}}]}
status: {phase: Succeeded}
---
kind: Pod
metadata: {name: waits}
spec: {containers: [{name: c, resources: {requests: {cpu: 5}}}]}
`, "map[a:{2100m 1GiB 0 []} a/mig-1g.5gb:{2100m 1GiB 2 []}]"},
		{"fractions", hamiNodeYAML("a", "NVIDIA-T4", 16000) + `---
kind: Pod
metadata: {name: p, annotations: {hami.io/vgpu-devices-allocated: 'a-1,NVIDIA,9000,20:;a-0,NVIDIA,3000,30:;a-1,NVIDIA,4000,0:;garbage'}}
spec: {nodeName: a, initContainers: [{name: i}], containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}}}, {name: d}]}
---
kind: Pod
metadata: {name: q, annotations: {hami.io/vgpu-devices-allocated: 'a-0,NVIDIA,1000,50:;'}}
spec: {nodeName: a, containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}}}]}
`, "map[a:{0 0MiB 0 [{0 800m 3.91GiB} {1 200m 8.79GiB}]}]"},
		{"claims", node("a", "", "") + "---\n" + dividable(2) + `---
kind: ResourceClaim
metadata: {name: c, namespace: ns}
status: {allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: a, device: gpu-1}, {request: s, driver: gpu.nvidia.com, pool: a, device: gpu-0-mig-1g-3},
  {request: s, driver: gpu.nvidia.com, pool: a, device: gpu-0-mig-1g-4}, {request: t, driver: other, pool: a, device: gpu-0}, {request: m, driver: gpu.nvidia.com, pool: a, device: gpu-0, adminAccess: true}]}}}
---
kind: Pod
metadata: {name: p, namespace: ns}
spec: {nodeName: a, resourceClaims: [{name: x, resourceClaimTemplateName: t}], containers: [{name: c}]}
status: {resourceClaimStatuses: [{name: x, resourceClaimName: c}]}
---
kind: Pod
metadata: {name: q, namespace: ns}
spec: {nodeName: a, resourceClaims: [{name: x, resourceClaimName: c}], containers: [{name: c}]}
`, "map[a:{0 0MiB 0 [{0 284m 10GiB} {1 1 40GiB}]}]"},
		{"capacity", node("a", "", "") + "---\n" + shareable + `---
kind: ResourceClaim
metadata: {name: c, namespace: ns}
status: {allocation: {devices: {results: [{request: r, driver: vgpu.example.com, pool: a, device: d0, consumedCapacity: {memory: 16Gi, cores: '25'}}]}}}
---
kind: Pod
metadata: {name: p, namespace: ns}
spec: {nodeName: a, resourceClaims: [{name: x, resourceClaimName: c}], containers: [{name: c}]}
`, "map[a:{0 0MiB 0 [{0 250m 16GiB}]}]"},
	}
	for _, c := range tables {
		t.Run(c.name, func(t *testing.T) {
			o := read(t, c.yaml)
			if got := fmt.Sprint(o.reader(Rules{}).Occupied(o.pods, o)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestFits(t *testing.T) {
	o := read(t, node("a", "nvidia.com/gpu.product: NVIDIA-T4", "nvidia.com/gpu: 4"), hamiNodeYAML("b", "NVIDIA-T4", 16000), pod("nvidia.com/gpu: 1, nvidia.com/gpumem: 1000"))
	r := o.reader(Rules{})
	n, p := r.Ask(o.pods[0], nil)
	if !p.None() {
		t.Fatal(p)
	}
	if a, b := n.Fits(&r.machines[0]), n.Fits(&r.machines[1]); a != "its devices are given out whole" || b != "" {
		t.Errorf("got %q, %q", a, b)
	}
	n.Models = []string{"V100"}
	if got := n.Fits(&r.machines[1]); got != "its devices are NVIDIA-T4, not V100" {
		t.Error(got)
	}
}
