package filter

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/run/kube/filter/filtertest"
)

func manyNodes(n int) []*corev1.Node {
	var out []*corev1.Node
	for i := range n {
		name := fmt.Sprintf("n%04d", i)
		out = append(out, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprint(i % 4), "disk": fmt.Sprint(i % 2)}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("1Ti"),
				"pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8"), "ephemeral-storage": resource.MustParse("100Gi")}},
		})
	}
	return out
}

func gpuPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"app": "train"}}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "nvidia.com/gpu": resource.MustParse("1")}}}}
	for _, key := range evictingTaints {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	p.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

func onDisk(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "1"} }

func storing(p *corev1.Pod) {
	p.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("1Gi")
}

func selfApart(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}}}}}
}

func zoneSpread(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone,
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}}}
}

func hostOfNodes(t testing.TB, n int) *Host {
	h, _ := hostOf(t)
	for _, node := range manyNodes(n) {
		h.SetNode(node)
	}
	return h
}

func TestSignatures(t *testing.T) {
	h := hostOfNodes(t, 1)
	relabelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "train", "index": "7"} }
	fpga := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["example.com/fpga"] = resource.MustParse("1")
	}
	ports := func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: "TCP"}}
	}
	for _, c := range []struct {
		name           string
		change         func(*corev1.Pod)
		plain, static  bool
		perNode        int
		sameRelabelled bool
	}{
		{name: "plain", change: func(*corev1.Pod) {}, plain: true, static: true, sameRelabelled: true},
		{name: "node selector", change: onDisk, static: true, sameRelabelled: true},
		{name: "local storage", change: storing, sameRelabelled: true},
		{name: "other devices", change: fpga, sameRelabelled: true},
		{name: "host ports", change: ports, perNode: 1, sameRelabelled: true},
		{name: "anti-affinity to itself", change: selfApart, perNode: 1, sameRelabelled: true},
		{name: "topology spread", change: zoneSpread, sameRelabelled: true},
	} {
		pod := gpuPod("p", c.change)
		signature := h.Signature(pod)
		if (signature == Plain) != c.plain || static(h, pod) != c.static {
			t.Errorf("%s: signature %s, static %v", c.name, signature, static(h, pod))
		}
		if other := h.Signature(gpuPod("q", c.change, relabelled)); (other == signature) != c.sameRelabelled {
			t.Errorf("%s: another pod of the kind has signature %s, this one %s", c.name, other, signature)
		}
		set, err := h.Nodes(t.Context(), pod)
		if err != nil || set.PerNode != c.perNode {
			t.Errorf("%s: set %+v, %v", c.name, set, err)
		}
	}
	db := func(p *corev1.Pod) { p.Labels["app"] = "db" }
	if h.Signature(gpuPod("p", selfApart)) == h.Signature(gpuPod("p", selfApart, db)) {
		t.Error("a pod that its own anti-affinity does not meet has the signature of one that it does")
	}
	h.SetPod(onNode(gpuPod("there", selfApart), "n0000"))
	if pod := gpuPod("p"); static(h, pod) || h.Signature(pod) == Plain {
		t.Error("a pod that meets the anti-affinity of another counts as plain")
	}
}

// The same pointer says that nothing changed, and plain pods hear only of what concerns them.
func TestNodeSetsStayUntilTheyChange(t *testing.T) {
	h := hostOfNodes(t, 3)
	nodes := func(p *corev1.Pod) *Set {
		set, err := h.Nodes(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	plain, storage := gpuPod("p"), gpuPod("q", storing)
	before, beforeStorage := nodes(plain), nodes(storage)
	beat := h.nodes["n0000"].DeepCopy()
	beat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
	h.SetNode(beat)
	if h.stale {
		t.Error("a heartbeat made the snapshot stale")
	}
	full := onNode(gpuPod("r", storing, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("100Gi")
	}), "n0001")
	h.SetPod(full)
	if nodes(plain) != before {
		t.Error("a pod that was bound changed the node set of plain pods")
	}
	if set := nodes(storage); set == beforeStorage || len(set.Allowed) != 2 || set.Words() != "2/3 nodes are available: 1 Insufficient ephemeral-storage." {
		t.Errorf("the node is full: %s", set.Words())
	}
	small := h.nodes["n0001"].DeepCopy()
	small.Status.Allocatable["pods"] = resource.MustParse("1")
	h.SetNode(small)
	if set := nodes(plain); set.Words() != "2/3 nodes are available: 1 Too many pods." || set.Crowded[0] != "n0001" {
		t.Errorf("the node holds as many pods as it may: %s", set.Words())
	}
	h.DeletePod(full)
	if len(nodes(plain).Allowed) != 3 {
		t.Error("the node is free again")
	}
}

func TestRoom(t *testing.T) {
	h := hostOfNodes(t, 1)
	h.SetPod(onNode(gpuPod("r", storing), "n0000"))
	for _, c := range []struct {
		pod  *corev1.Pod
		node string
		room int
	}{
		{gpuPod("p"), "n0000", 109}, {gpuPod("p", storing), "n0000", 99}, {gpuPod("p"), "elsewhere", 0},
	} {
		room, err := h.Room(c.pod, c.node)
		if err != nil || room != c.room {
			t.Errorf("room for %d pods on %s, want %d (%v)", room, c.node, c.room, err)
		}
	}
}

func TestBadCallsAreErrors(t *testing.T) {
	if _, err := New(t.Context(), Options{}); err == nil {
		t.Error("a host without a client")
	}
	h := hostOfNodes(t, 2)
	pod := gpuPod("p")
	if err := h.assume(pod, "n0000"); err != nil {
		t.Fatal(err)
	}
	if err := h.assume(pod, "n0001"); err == nil {
		t.Error("assumed on two nodes")
	}
	if err := h.assume(&corev1.Pod{}, "n0001"); err == nil {
		t.Error("assumed a pod without a uid")
	}
	refusal, err := h.Check(t.Context(), []Placed{{filtertest.Plain(), "gone"}})
	if err != nil || refusal == nil || refusal.Words() != "pod default/p does not fit on node gone: the node does not exist" {
		t.Errorf("%v, %v", refusal, err)
	}
	h.DeletePod(filtertest.Plain())
	h.DeleteNode("gone")
}

func BenchmarkNodes(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
	}{
		{"plain", func(*corev1.Pod) {}}, {"selector", onDisk}, {"storage", storing}, {"anti-affinity", selfApart}, {"spread", zoneSpread},
	} {
		h := hostOfNodes(b, 1000)
		for i := range 4000 {
			h.SetPod(onNode(gpuPod(fmt.Sprint(i), c.change), fmt.Sprintf("n%04d", i%1000)))
		}
		pod := gpuPod("p", c.change)
		b.Run(c.name+"/first", func(b *testing.B) {
			for b.Loop() {
				clear(h.answers)
				benchNodes(b, h, pod)
			}
		})
		b.Run(c.name+"/again", func(b *testing.B) {
			for b.Loop() {
				benchNodes(b, h, pod)
			}
		})
		b.Run(c.name+"/after a pod", func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				h.SetPod(onNode(gpuPod(fmt.Sprint("x", i%8)), fmt.Sprintf("n%04d", i%1000)))
				benchNodes(b, h, pod)
			}
		})
		b.Run(c.name+"/after a node", func(b *testing.B) {
			nodes := [2]*corev1.Node{h.nodes["n0007"], h.nodes["n0007"].DeepCopy()}
			nodes[1].Spec.Unschedulable = true
			i := 0
			for b.Loop() {
				i++
				h.SetNode(nodes[i%2])
				benchNodes(b, h, pod)
			}
			h.SetNode(nodes[0])
		})
	}
}

func benchNodes(b *testing.B, h *Host, pod *corev1.Pod) {
	if _, err := h.Nodes(b.Context(), pod); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
	}{{"plain", func(*corev1.Pod) {}}, {"selector", onDisk}, {"storage", storing}, {"anti-affinity", selfApart}} {
		h := hostOfNodes(b, 1000)
		var gang []Placed
		for i := range 64 {
			node := fmt.Sprintf("n%04d", 1+2*(i/8))
			if c.name == "anti-affinity" {
				node = fmt.Sprintf("n%04d", i)
			}
			gang = append(gang, Placed{Pod: gpuPod(fmt.Sprint("g", i), c.change), Node: node})
		}
		b.Run(c.name+"/64 pods", func(b *testing.B) {
			for b.Loop() {
				if refusal, err := h.Check(b.Context(), gang); refusal != nil || err != nil {
					b.Fatal(refusal, err)
				}
			}
		})
	}
}

func BenchmarkSignature(b *testing.B) {
	h := hostOfNodes(b, 10)
	for name, pod := range map[string]*corev1.Pod{"plain": gpuPod("p"), "anti-affinity": gpuPod("p", selfApart)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				h.Signature(pod)
			}
		})
	}
}

// static says that the node set of a pod depends on the nodes alone.
func static(h *Host, pod *corev1.Pod) bool {
	_, reach := h.sign(pod)
	return reach == ofNode
}
